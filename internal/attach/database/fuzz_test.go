package database

import (
	"testing"

	"github.com/whystall/whystall/internal/attach/attachtest/fuzz"
)

func FuzzTiDBSlow(f *testing.F)     { fuzz.Kind(f, tidbSlow) }
func FuzzTiDBPlan(f *testing.F)     { fuzz.Kind(f, tidbPlan) }
func FuzzTiDBCop(f *testing.F)      { fuzz.Kind(f, tidbCop) }
func FuzzTiKV(f *testing.F)         { fuzz.Kind(f, tikvSlow) }
func FuzzEtcd(f *testing.F)         { fuzz.Kind(f, etcd) }
func FuzzRedisDoctor(f *testing.F)  { fuzz.Kind(f, redisDoctor) }
func FuzzRedisLatest(f *testing.F)  { fuzz.Kind(f, redisLatest) }
func FuzzRedisSlow(f *testing.F)    { fuzz.Kind(f, redisSlow) }
func FuzzRedisInfo(f *testing.F)    { fuzz.Kind(f, redisInfo) }
func FuzzIntrinsic(f *testing.F)    { fuzz.Kind(f, redisIntrinsic) }
func FuzzRedisPing(f *testing.F)    { fuzz.Kind(f, redisPing) }
func FuzzPGLog(f *testing.F)        { fuzz.Kind(f, pgLog) }
func FuzzPGPlan(f *testing.F)       { fuzz.Kind(f, pgPlan) }
func FuzzPGActivity(f *testing.F)   { fuzz.Kind(f, pgActivity) }
func FuzzInnoDB(f *testing.F)       { fuzz.Kind(f, innodb) }
func FuzzProcesslist(f *testing.F)  { fuzz.Kind(f, processlist) }
func FuzzMySQLSlow(f *testing.F)    { fuzz.Kind(f, mysqlSlow) }
func FuzzPGLocks(f *testing.F)      { fuzz.Kind(f, pgLocks) }
func FuzzMySQLExplain(f *testing.F) { fuzz.Kind(f, mysqlExplain) }
func FuzzMongo(f *testing.F)        { fuzz.Kind(f, mongoSlow) }
func FuzzHAProxy(f *testing.F)      { fuzz.Kind(f, haproxy) }
func FuzzNginx(f *testing.F)        { fuzz.Kind(f, nginxTimes) }
func FuzzHotThreads(f *testing.F)   { fuzz.Kind(f, hotThreads) }
func FuzzTiDBInfo(f *testing.F)     { fuzz.Kind(f, tidbInfo) }
func FuzzRedisClients(f *testing.F) { fuzz.Kind(f, redisClients) }
func FuzzRedisKeys(f *testing.F)    { fuzz.Kind(f, redisKeys) }
func FuzzRedisMemory(f *testing.F)  { fuzz.Kind(f, redisMemory) }
func FuzzMemcached(f *testing.F)    { fuzz.Kind(f, memcached) }
func FuzzHAProxyStats(f *testing.F) { fuzz.Kind(f, haproxyStats) }
func FuzzEnvoyStats(f *testing.F)   { fuzz.Kind(f, envoyStats) }
func FuzzNginxStatus(f *testing.F)  { fuzz.Kind(f, nginxStatus) }
func FuzzQueryDigest(f *testing.F)  { fuzz.Kind(f, queryDigest) }
func FuzzDumpSlow(f *testing.F)     { fuzz.Kind(f, dumpSlow) }
func FuzzThreadPools(f *testing.F)  { fuzz.Kind(f, threadPools) }
func FuzzMongoState(f *testing.F)   { fuzz.Kind(f, mongoState) }
func FuzzSQL(f *testing.F)          { fuzz.Kind(f, sqlKind(nil)) }
func FuzzNodeStatus(f *testing.F)   { fuzz.Kind(f, nodeStatus) }
func FuzzCompactions(f *testing.F)  { fuzz.Kind(f, compactions) }
func FuzzNodeGC(f *testing.F)       { fuzz.Kind(f, nodeGC) }
func FuzzHistograms(f *testing.F)   { fuzz.Kind(f, nodeHistograms) }
func FuzzRedisLog(f *testing.F)     { fuzz.Kind(f, redisLog) }
func FuzzMySQLBrief(f *testing.F)   { fuzz.Kind(f, mysqlBrief) }
func FuzzJSONPlan(f *testing.F)     { fuzz.Kind(f, jsonPlan) }
