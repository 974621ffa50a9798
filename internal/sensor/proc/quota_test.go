package proc

import "testing"

func TestSharedQuota(t *testing.T) {
	enabled := "cpu memory\n"
	v2 := map[string]string{
		"proc/self/mountinfo":                            v2mount,
		"proc/7/cgroup":                                  "0::/pods/one/web\n",
		"proc/8/cgroup":                                  "0::/pods/one/web\n",
		"proc/9/cgroup":                                  "0::/pods/one/side\n",
		"proc/10/cgroup":                                 "0::/system\n",
		"sys/fs/cgroup/cgroup.controllers":               enabled,
		"sys/fs/cgroup/pods/cgroup.controllers":          enabled,
		"sys/fs/cgroup/pods/cpu.max":                     "max 100000\n",
		"sys/fs/cgroup/pods/one/cgroup.controllers":      enabled,
		"sys/fs/cgroup/pods/one/cpu.max":                 "50000 100000\n",
		"sys/fs/cgroup/pods/one/web/cgroup.controllers":  enabled,
		"sys/fs/cgroup/pods/one/web/cpu.max":             "16000 100000\n",
		"sys/fs/cgroup/pods/one/side/cgroup.controllers": enabled,
		"sys/fs/cgroup/system/cgroup.controllers":        enabled,
		"sys/fs/cgroup/pods/one/side/cpu.max":            "10000 100000\n",
		"sys/fs/cgroup/pods/cgroup.type":                 "domain\n",
		"sys/fs/cgroup/pods/one/cgroup.type":             "domain\n",
		"sys/fs/cgroup/pods/one/web/cgroup.type":         "domain\n",
		"sys/fs/cgroup/pods/one/side/cgroup.type":        "domain\n",
		"sys/fs/cgroup/system/cgroup.type":               "domain\n",
		"proc/1/mountinfo":                               "",
	}
	v1 := map[string]string{
		"proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
		"proc/7/cgroup":       "2:cpu,cpuacct:/a\n", "proc/8/cgroup": "2:cpu,cpuacct:/a\n",
		"proc/10/cgroup":                  "2:cpu,cpuacct:/\n",
		"sys/fs/cgroup/cpu/release_agent": "", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
		"sys/fs/cgroup/cpu/cpu.cfs_period_us":  "100000\n",
		"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "20000\n", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
	}
	for _, tc := range []struct {
		name  string
		files map[string]string
		other int
		want  Quota
		ok    bool
	}{
		{"one group", v2, 8, Quota{"/pods/one/web", 0.16}, true},
		{"siblings share what is above them", v2, 9, Quota{"/pods/one", 0.5}, true},
		{"another part of the machine", v2, 10, Quota{}, false},
		{"gone", v2, 11, Quota{}, false},
		{"v1", v1, 8, Quota{"/a", 0.2}, true},
		{"v1, the root", v1, 10, Quota{}, false},
	} {
		if q, ok := tree(t, tc.files).SharedQuota(7, tc.other); q != tc.want || ok != tc.ok {
			t.Errorf("%s: %+v %v, want %+v %v", tc.name, q, ok, tc.want, tc.ok)
		}
	}
}
