// Package database knows what databases say of themselves: slow logs, plans, status pages. It
// refuses to take their counters since the start for rates, and a lock in their tables or a bad
// plan for a cause that whystall could look into.
//
// Files in reading order:
//
//	kinds.go          Kinds: the table of this room
//	facts.go          facts for rules over several parts; how a reading is gathered
//	numbers.go        durations and numbers, read and printed
//	tidbslow.go       TiDB's slow log
//	tidbslow_old.go   of it: records of TiDB 2.1 and before, in one line
//	tidbslow_read.go  what an entry says of retries, and of TiKV's part
//	tidbexpensive.go  TiDB's statements that still run; TiKV's timestamps that lag
//	tidbretries.go    what TiDB tried again: conflicts of transactions, requests that failed
//	cockroach.go      CockroachDB's log
//	tidbplan.go       TiDB's plans: their rows and times
//	tidbinfo.go       execution info of a plan, pasted without its row
//	tidbplan_tasks.go  of a plan: tasks one after another, keys that are scanned for nothing
//	tidbplan_read.go  what a plan says: client's clock against server's first
//	tidbplan_plain.go  plans that were not run
//	tidbplan_encoded.go  plans that are escaped in a log, or encoded in a slow log
//	tidbplan_waits.go  of a plan: waits for threads, locks, commits and before retries
//	tikv.go           TiDB's coprocessor log and TiKV's log
//	tikvsteps.go      of TiKV's log: its own steps that took long
//	etcd.go           etcd's log
//	etcdlevels.go     and its warnings and errors of what is not slow
//	etcdmetrics.go    etcd's histograms, and what Prometheus answers of them
//	redis.go          Redis' INFO
//	redisslow.go      Redis' SLOWLOG
//	redisstats.go     of INFO: what commands took since the start
//	redisconfig.go    answers to CONFIG GET
//	redislatency.go   Redis' latency monitor, and redis-cli's PING
//	redisintrinsic.go  redis-cli's measurement of the machine
//	redislog.go       Redis' log; mysqladmin's line
//	postgres.go       PostgreSQL's log
//	postgreslocks.go   of it: who waits for locks, and in which queue
//	postgrescheckpoint.go  of it: checkpoints, what started them, and their fsyncs
//	postgresvacuum.go  of it: what autovacuum took and left
//	pgstate.go        pg_stat_activity
//	pgplan.go         PostgreSQL's plans: nodes and their times
//	pgplan_read.go    what a plan of PostgreSQL or MySQL says
//	planrows.go       how many rows a plan reads for those that it gives
//	flatplan.go       plans whose indentation was lost
//	mysqlplan.go      MySQL's plans as a tree
//	innodb.go         InnoDB's status
//	innodbwaits.go    of it: transactions that wait for locks
//	innodbdead.go     of it: a deadlock of transactions
//	innodbsemas.go    of it: waits for its own locks
//	innodbrates.go    of it: what it did in the seconds before
//	innodbquiet.go    of it: what it shows where nobody waits
//	mysql.go          MySQL's processlist
//	mysqlslow.go      MySQL's slow log
//	mysqlwaits.go     of the processlist: who waits longest for a lock, and who may have it
//	mysqlcomma.go     of it: a processlist with commas
//	mysqllog.go       MySQL's error log: the page cleaner
//	explain.go        MySQL's EXPLAIN and MariaDB's ANALYZE as tables; pg_locks
//	planjson.go       plans as JSON
//	mongo.go          MongoDB's slow operations
//	hotthreads.go     Elasticsearch's hot threads
//	elasticslow.go    Elasticsearch's slow logs
//	sqltable.go       results of statements, as clients print them
//	psqlresult.go     of psql: results of one column, times, descriptions of tables
//	sqlviews.go       tables of which it is known what they say: locks, statements, waits
//	mssql.go          of them: what sessions of SQL Server wait for; tables below strokes
//	mssqlstats.go     of them: SQL Server's sums of waits
//	poolerlog.go      logs of PgBouncer and Pgpool-II
//	pgbouncer.go      of them: PgBouncer's pools
//	sqlmore.go        ClickHouse's query_log, PgHero's list
//	tidbviews.go      TiDB's tables of transactions and of deadlocks
//	sqlstate.go       the others: counters and settings
//	cassandra.go      nodetool's reports
//	digestjson.go     pt-query-digest --output json
//	summaries.go      pt-query-digest, mysqldumpslow, pools of threads
//	cachestats.go     what Redis, memcached, HAProxy, Envoy and nginx count of themselves
//	mongostat.go      mongostat
//	elasticrejected.go  tasks that Elasticsearch refused
//	fpmlog.go         PHP-FPM's log
//	workers.go        PHP-FPM's status, mongotop
//	replication.go    how far replicas are behind; redis-cli --stat
//	mongoexplain.go   MongoDB's explain; slow operations with a line for each value
//	mongostate.go     MongoDB's serverStatus and currentOp
//	mongolate.go      its own slow serverStatus; locks of currentOp, as Python prints it too
//	clickhouse.go     the figures below a result of ClickHouse's client
//	clickhouselog.go  ClickHouse's server log
//	hikari.go         HikariCP's log of a pool
//	spoken.go         logs whose fixed words say that their own server was late
//	spokenkinds.go    such logs: ZooKeeper, Seastar, event loops, raft, a client of Redis
//	zookeeper.go      ZooKeeper's answer to mntr
//	dotnetcounters.go  what dotnet-counters collects
//	apitrace.go       traces of requests that Kubernetes logs
//	rdkafka.go        what librdkafka counts
//	kafkagroup.go     what a consumer group of Kafka has not read yet
//	rabbitqueues.go   how much lies in RabbitMQ's queues
//	rabbitmq.go       RabbitMQ's alarms
//	proxyerrors.go    what nginx and HAProxy say of servers behind them
//	accesslog.go      logs of HAProxy and nginx with times
//	routerlog.go      access logs of Traefik and Caddy
//	envoylog.go       logs of Envoy
package database
