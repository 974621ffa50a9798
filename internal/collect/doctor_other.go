//go:build !linux

package collect

import "runtime"

func standIn() (pid, nspid int) { return 0, 0 }

func machine() []Ability {
	return []Ability{{Tier: TierSystem, Name: "Linux",
		Say: "processes are recorded on Linux only, and this is " + runtime.GOOS +
			"; whystall explain works everywhere"}}
}
