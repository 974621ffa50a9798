package database

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// fuzzKind checks that a kind claims no more than it was shown, and reads what it claims.
func fuzzKind(f *testing.F, k *attach.Kind) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := paste.Lines(data)
		for i := range lines {
			n := k.Claim(lines[i:])
			if n < 0 || n > len(lines)-i {
				t.Fatalf("claims %d of %d lines", n, len(lines)-i)
			}
			if n > 0 && k.Read != nil {
				k.Read(&attach.Part{Kind: k, Lines: lines[i : i+n]})
			}
			if i > 20 {
				return
			}
		}
	})
}

func FuzzTiDBSlow(f *testing.F)     { fuzzKind(f, tidbSlow) }
func FuzzTiDBPlan(f *testing.F)     { fuzzKind(f, tidbPlan) }
func FuzzTiDBCop(f *testing.F)      { fuzzKind(f, tidbCop) }
func FuzzTiKV(f *testing.F)         { fuzzKind(f, tikvSlow) }
func FuzzEtcd(f *testing.F)         { fuzzKind(f, etcd) }
func FuzzRedisDoctor(f *testing.F)  { fuzzKind(f, redisDoctor) }
func FuzzRedisLatest(f *testing.F)  { fuzzKind(f, redisLatest) }
func FuzzRedisSlow(f *testing.F)    { fuzzKind(f, redisSlow) }
func FuzzRedisInfo(f *testing.F)    { fuzzKind(f, redisInfo) }
func FuzzIntrinsic(f *testing.F)    { fuzzKind(f, redisIntrinsic) }
func FuzzRedisPing(f *testing.F)    { fuzzKind(f, redisPing) }
func FuzzPGLog(f *testing.F)        { fuzzKind(f, pgLog) }
func FuzzPGPlan(f *testing.F)       { fuzzKind(f, pgPlan) }
func FuzzPGActivity(f *testing.F)   { fuzzKind(f, pgActivity) }
func FuzzInnoDB(f *testing.F)       { fuzzKind(f, innodb) }
func FuzzProcesslist(f *testing.F)  { fuzzKind(f, processlist) }
func FuzzMySQLSlow(f *testing.F)    { fuzzKind(f, mysqlSlow) }
func FuzzPGLocks(f *testing.F)      { fuzzKind(f, pgLocks) }
func FuzzMySQLExplain(f *testing.F) { fuzzKind(f, mysqlExplain) }
func FuzzMongo(f *testing.F)        { fuzzKind(f, mongoSlow) }
func FuzzHAProxy(f *testing.F)      { fuzzKind(f, haproxy) }
func FuzzNginx(f *testing.F)        { fuzzKind(f, nginxTimes) }
func FuzzHotThreads(f *testing.F)   { fuzzKind(f, hotThreads) }
func FuzzTiDBInfo(f *testing.F)     { fuzzKind(f, tidbInfo) }
