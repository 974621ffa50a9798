package database

import "github.com/whystall/whystall/internal/attach"

// Kinds lists the kinds of this room.
func Kinds() []*attach.Kind {
	known := []*attach.Kind{tidbSlow, tidbPlan, tidbInfo, tidbCop, tikvSlow, etcd, redisDoctor,
		redisLatest, redisSlow, redisInfo, redisIntrinsic, redisPing,
		pgLog, pgPlan, mysqlPlan, pgActivity, pgLocks, innodb, processlist, mysqlSlow, mysqlExplain,
		mongoSlow, mongoState, haproxy, nginxTimes, hotThreads,
		redisClients, redisKeys, redisMemory, memcached, haproxyStats, envoyStats, nginxStatus,
		redisConfig, queryDigest, digestJSON, dumpSlow, threadPools,
		nodeStatus, compactions, nodeGC, nodeHistograms, redisLog, mysqlBrief, jsonPlan,
		zookeeper, zooMntr, seastar, blockedLoop, guestSafepoint, hashiRaft, redisClient, phpFPM,
		mongotop, kafka, envoyLog, mongoLate, dotnetCounters,
		hikari, rabbit, mysqlLog, etcdMetrics, tidbExpensive, tidbRetries, tikvResolved, cockroach,
		mongostat, elasticRejected, fpmLog, apiTrace, rdKafka, proxyErrors, clickhouse, houseLog,
		kafkaGroup, rabbitQueues, elasticSlow, psqlTable,
		mongoExplain, mongoPrinted, poolerLog, routerLog,
		mongoLag, redisStat}
	return append(known, sqlKind(known), psqlSingle(known))
}
