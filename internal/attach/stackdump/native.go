package stackdump

// accepts are calls that wait for a connection. Threads that share a port take turns in them: a
// lock that one waits for there keeps no work up.
var accepts = rule{names: []string{"accept", "accept4", "libc_accept*", "accept_mutex_on",
	"ServerSocket.accept", "ServerSocket.implAccept", "ServerSocketChannelImpl.accept*",
	"PlainSocketImpl.accept", "AbstractPlainSocketImpl.accept", "NioSocketImpl.accept"}}

// rubyCode are functions by which Ruby's interpreter calls code of the program.
var rubyCode = rule{names: []string{"rb_vm_exec", "vm_exec*", "rb_yield*", "rb_ensure", "rb_funcall*",
	"rb_vm_invoke_proc"}}

// anyProgram are names of a database's waits for a table or a file that any program may have as
// well. They count below functions that only the engines have.
var (
	anyProgram = rule{names: []string{"lock_wait", "wait_for_lock", "wait_for_refresh", "thr_lock",
		"FileRead", "FileWrite", "mdread", "mdwrite"}}
	engines = rule{names: []string{"mysql_execute_command", "mysql_lock_tables", "mysqld*", "handler::*", "ha_*", "row_*", "que_*", "trx_*",
		"JOIN::*", "dispatch_command", "do_command", "handle_one_connection", "open_table*", "lock_tables",
		"thr_multi_lock", "lock_rec*", "PostgresMain", "ServerLoop", "smgrread", "smgrwrite", "BufferSync", "exec_simple_query", "Sql_cmd*"}}
)

var eventLoops = []string{"ev_run", "uv_run", "event_base_loop", "event_base_dispatch", "g_main_loop_run"}

// native are the rules of C, C++ and Rust programs. The functions are those of glibc 2.17 to 2.41,
// libstdc++, MySQL and MariaDB 5.5 to 11, PostgreSQL, and of the client libraries that are common.
var native = []rule{
	// Locks of the library that name their cause.
	{lock, stackCache, inLock, 9, []string{"allocate_stack", "get_cached_stack", "deallocate_stack",
		"nptl_deallocate_stack", "queue_stack",
		"free_stacks", "nptl_free_stacks", "free_tcb", "nptl_free_tcb", "allocate_thread_stack"}},
	{lock, loaderLock, inLock, 9, []string{"dl_iterate_phdr*", "dl_open*", "dlopen*", "dl_addr*",
		"dl_sym*", "dlsym", "dl_find_object*", "tls_get_addr*",
		"Unwind_Find_FDE", "dl_catch_*", "tls_get_addr_tail"}},
	{lock, interpreter, anything, 14, []string{"take_gil", "drop_gil", "PyEval_AcquireLock",
		"PyEval_AcquireThread", "gvl_acquire*", "thread_sched_to_running*",
		"thread_sched_wait_running_turn", "do_gvl_timer", "PyGILState_Ensure"}},
	{lock, interpreter, inCond, 14, []string{"PyEval_RestoreThread"}},
	{lock, arenaLock, inLock, 6, []string{"int_malloc", "int_free", "int_realloc", "int_memalign",
		"malloc", "free", "calloc", "realloc", "libc_malloc",
		"libc_free", "libc_calloc", "libc_realloc", "arena_get*", "malloc_consolidate",
		"tcmalloc::CentralFreeList::*", "je_arena_*", "*arena_bin_lock",
		"malloc_mutex_lock_slow", "tcache_bin_flush*", "operator new", "operator delete"}},
	{lock, loggerLock, inLock, nearSite, []string{"*spdlog::", "*google::LogMessage", "*log4cplus",
		"*log4cxx", "*boost::log", "vsyslog", "syslog", "vsyslog_chk",
		"*log4cpp", "*plog::", "*easylogging", "LogMessage::Flush", "LogMessage::SendToLog",
		"fprintf*", "vfprintf*", "fputs", "puts", "IO_puts", "IO_fputs",
		"fwrite", "IO_fwrite", "vprintf", "printf", "fflush", "*quill::", "zlog*", "sd_journal_*",
		"write_log*", "log_write_line", "*Logger::log", "*Logger::write"}},

	{lock, plainLock, inCond, 20, []string{"rb_mutex_lock", "do_mutex_lock", "rb_mutex_synchronize",
		"rb_monitor_enter", "monitor_enter"}},

	// A database's own.
	{tableLock, 0, anything, 0, []string{"MDL_context::acquire_lock*", "MDL_wait::timed_wait",
		"lock_wait_suspend_thread", "lock_wait", "lock_rec_lock*wait",
		"wait_for_lock", "thr_lock", "thr_multi_lock", "ProcSleep", "LockAcquireExtended",
		"mysql_ull_*", "Item_func_get_lock::*", "row_mysql_handle_errors", "srv_suspend_mysql_thread",
		"wait_if_global_read_lock", "lock_global_read_lock", "Global_read_lock::*",
		"wait_while_table_is_used", "tdc_wait_for_old_version*", "wait_for_refresh"}},
	{pooled, 0, anything, 12, []string{"srv_conc_enter_innodb*", "srv_conc_force_enter_innodb"}},
	{lock, engineLock, anything, 12, []string{"rw_lock_*_lock_spin", "rw_lock_s_lock*",
		"rw_lock_x_lock*", "rw_lock_sx_lock*", "pfs_rw_lock_*", "sync_array_wait_event",
		"mutex_spin_wait", "*mutex_enter_inline", "PolicyMutex*::enter", "TTASEventMutex*::enter",
		"sux_lock*", "ssux_lock*", "rw_lock_*_lock_func", "srw_lock_impl*", "LWLockAcquire",
		"Query_cache::try_lock", "Query_cache::lock*", "Query_cache::wait_while_query_cache_is_busy"}},

	// Waits for a disk behind a database's or another program's own name for it.
	{disk, 0, anything, 0, []string{"fil_flush*", "os_file_flush*", "log_write_up_to",
		"log_write_flush_to_disk_low", "log_wait_for_flush", "MYSQL_BIN_LOG::sync_binlog_file",
		"buf_LRU_get_free_block*", "log_preflush_pool_modified_pages", "log_checkpoint_margin", "buf_read_page*",
		"os_file_io", "os_file_pread", "os_file_pwrite", "rocksdb::PosixWritableFile::Sync",
		"rocksdb::PosixWritableFile::Fsync",
		"XLogFlush", "XLogWrite", "issue_xlog_fsync", "FileRead", "FileWrite", "mdread", "mdwrite",
		"WiredTiger*fsync", "__posix_sync"}},

	// A run loop of macOS waits for events; other messages that are waited for are answers.
	{idle, 0, inCond, 8, []string{"CFRunLoopServiceMachPort", "mach_msg_server*"}},
	{idle, 0, anything, 0, []string{"handle_slave_io", "rd_kafka_thread_main", "rd_kafka_broker_thread_main"}},
	// A consumer of a queue, and a loop over many transfers, wait for what may come.
	{idle, 0, inCond, 0, []string{"rd_kafka_consumer_poll", "rd_kafka_consume*", "rd_kafka_poll*",
		"rd_kafka_queue_poll", "rd_kafka_event_poll"}},
	{idle, 0, inPoll, nearLoop, []string{"curl_multi_*", "Curl_multi_*", "multi_wait"}},
	// Go's runtime, whose threads sleep in its own futex: without work, or for one of its locks.
	{lock, plainLock, anything, 5, []string{"runtime.lock", "runtime.lock2", "runtime.lockWithRank"}},
	{idle, 0, anything, 6, []string{"runtime.findRunnable", "runtime.findrunnable", "runtime.stopm",
		"runtime.mPark", "runtime.sysmon", "runtime.notesleep",
		"runtime.notetsleep*", "runtime.stoplockedm", "runtime.netpoll", "runtime.templateThread", "runtime.usleep",
		"runtime.futexsleep", "runtime.epollwait", "runtime.semasleep"}},
	// Another server's answer, by the client library.
	{remote, 0, anything, 0, []string{"cli_safe_read*", "cli_read_query_result", "mysql_real_query",
		"mysql_send_query", "mysql_real_connect", "PQexec*", "PQgetResult", "pqWaitTimed", "pqSocketCheck",
		"PQconnect*", "redisGetReply", "redisBufferRead", "redisCommand", "memcached_*", "mongoc_*",
		"curl_easy_perform", "Curl_*", "ldap_result*",
		"SQLExecute", "SQLExecDirect*", "OCIStmtExecute", "kpu*", "nioqrc", "ttc*", "rd_kafka_*",
		"zookeeper_interest", "getaddrinfo", "gethostbyname*",
		"res_nsend", "libc_res_*", "libc_res_nsend", "send_dg", "mysql_read_*", "libpqrcv_*",
		"thrift::*readMessageBegin", "grpc::*BlockingUnaryCall*",
		"grpc_completion_queue_pluck*", "cq_pluck*"}},
	{remote, 0, inRead, 0, []string{"http*::*Client*", "recv_response"}},
	{remote, 0, inRead, 3, []string{"connect", "libc_connect"}},
	{remote, 0, anything, nearSite, []string{"rpc_call"}},

	// Loops that call what handles an event: only a loop that polls is idle.
	{idle, 0, inPoll, 0, eventLoops},
	{idle, 0, anything, 2, eventLoops},

	// Work that has not come: a server's own loops.
	{idle, 0, anything, nearLoop, []string{"io_handler_thread", "fil_aio_wait*", "os_aio_*wait",
		"LinuxAIOHandler::*", "os_aio_handler", "srv_monitor_thread",
		"srv_error_monitor_thread", "srv_master_*", "srv_worker_thread", "srv_purge_coordinator_*",
		"srv_purge_*suspend", "buf_flush_page_cleaner*",
		"buf_dump_thread", "buf_resize_thread", "dict_stats_thread", "fts_optimize_thread",
		"lock_wait_timeout_thread", "log_writer", "log_flusher",
		"log_checkpointer", "log_closer", "log_flush_notifier", "log_write_notifier",
		"log_files_governor", "signal_hand", "ib_defragment*", "btr_defragment_thread",
		"handle_manager", "timer_notify_thread*",
		"Per_thread_connection_handler::block_until_new_connection", "cache_thread", "block_until_new_connection",
		"get_event", "io_poll_wait", "listener", "tpool::*::wait_for_tasks",
		"thread_pool_generic::*wait*", "pfs_spawn_*idle", "handle_connections_*",
		"Mysqld_socket_listener::*", "compress_gtid_table", "binlog_background_thread",
		"handle_slave_background", "ma_checkpoint_background",
		"ngs::*", "xpl::*", "event_scheduler*", "Event_queue::*", "clone_gtid_thread",
		"Clone_persist_gtid::*", "purge_archived_*", "my_timer_*",
		"mysqld_main", "os_thread_sleep", "Gcs_*", "rpl_parallel_thread::*wait*",
		"Protocol_classic::read_packet", "Protocol_classic::get_command",
		"PostgresMain_wait", "ReadCommand", "SocketBackend", "secure_read", "WalWriterMain",
		"BackgroundWriterMain", "CheckpointerMain", "AutoVacLauncherMain",
		"ServerLoop", "LogicalLauncherMain", "ApplyLauncherMain", "PgstatCollectorMain",
		"SysLogger_Main", "bioProcessBackgroundJobs", "aeApiPoll",
		"IOThreadMain", "background_thread_entry", "g_main_context_poll",
		"uv__io_poll", "ngx_epoll_process_events", "tokio::runtime::*park*", "mio::*poll*",
		"grpc_*pollset_work*", "grpc_core::*Executor*", "cq_next",
		"grpc_completion_queue_next", "do_handle_one_connection_idle",
		"rocksdb::ThreadPoolImpl::*BGThread*", "ThreadPoolImpl::Impl::BGThread", "GCTaskManager::get_task",
		"ConcurrentG1RefineThread*wait*", "VMThread::wait_for_vm_thread_operation",
		"CompileQueue::get", "WatcherThread::sleep", "v8::platform::*GetNext", "PlatformWorkerThread",
		"WorkerThreadsTaskRunner*", "AbstractGangWorker::*", "WorkGang*::*", "timer_thread_func",
		"Item_func_sleep::val_int", "pg_sleep", "slave_deadlock_handler",
		"end_thread", "srv_lock_timeout*", "os_aio_simulated_handle", "os_aio_linux_handle",
		"next_event", "wait_for_update_bin_log", "wait_for_update_relay_log", "kill_server_thread",
		"timer_helper_thread", "slave_worker_exec*wait", "pop_jobs_item", "buf_page_cleaner*", "recv_writer_thread"}},
	{idle, 0, inCond, nearSite, []string{"do_handle_one_connection", "one_thread_per_connection_end",
		"handle_one_connection"}},
	// A connection that waits for its client's next command.
	{idle, 0, inRead, 0, []string{"net_read_packet*", "net_read_raw_loop", "my_real_read",
		"my_net_read*", "vio_read*"}},
	{idle, 0, inPoll, 0, []string{"net_read_packet*", "my_net_read*", "vio_io_wait",
		"vio_socket_io_wait", "do_command"}},

	// Queues and pools of the program's own, by the words that people use for them.
	{room, 0, inCond, nearSite, []string{"push", "push_back", "enqueue", "Push", "Enqueue", "put", "Put",
		"produce", "emplace_back"}},
	{pooled, 0, inCond, nearSite, []string{"getConnection", "get_connection", "acquireConnection",
		"acquire_connection", "checkout_connection", "borrow_connection", "ConnectionPool::get*",
		"ConnectionPool::acquire*", "ConnectionPool::borrow*", "ConnectionPool::checkout*",
		"ConnectionPool::take*", "ConnectionPool::lease*", "ConnectionPool::wait*"}},
	{idle, 0, inCond, nearSite, []string{"pop", "pop_front", "Pop", "dequeue", "Dequeue", "take", "Take",
		"consume", "wait_for_work", "WaitForWork", "get_task", "getTask",
		"wait_for_task", "wait_for_tasks", "run_worker", "wait_for_job",
		"g_async_queue_pop*", "g_async_queue_timeout_pop*"}},
	{idle, 0, inCond, nearWord, []string{"*worker", "*Worker", "*pool", "*Pool", "*consumer", "*Consumer",
		"*scheduler", "*Scheduler", "*timer", "*Timer", "*background", "*Background", "*dispatcher",
		"*Dispatcher"}},
	{disk, 0, inDisk, 0, []string{"fsync", "fdatasync", "libc_fsync", "pread*", "pwrite*",
		"libc_pread*", "libc_pwrite*", "msync", "sync_file_range"}},
}

// kernelRules are those of stacks of the kernel: crash, and gdb of a vmcore.
var kernelRules = []rule{
	{lock, addressSpace, anything, 0, []string{"mmap_read_lock*", "mmap_write_lock*",
		"down_read_killable_mmap", "vm_mmap_pgoff_lock"}},
	{lock, kernelLock, anything, 0, []string{"rwsem_down_*", "mutex_lock_slowpath", "call_rwsem_*",
		"down_write*", "down_read*", "mutex_lock*", "native_queued_spin_lock_slowpath", "queued_spin_lock_slowpath"}},
	{disk, 0, anything, 0, []string{"io_schedule*", "wait_on_page_bit*", "wait_on_buffer*",
		"blkdev_issue_*", "submit_bio_wait", "jbd2_log_wait_commit", "xfs_log_force*", "folio_wait_*"}},
	{idle, 0, anything, 4, []string{"worker_thread", "kthread_worker_fn", "rescuer_thread",
		"smpboot_thread_fn", "kswapd", "kthreadd", "rcu_gp_*"}},
	{idle, 0, anything, 0, []string{"ep_poll", "do_epoll_wait", "do_nanosleep", "hrtimer_nanosleep",
		"inet_csk_accept", "do_wait", "poll_schedule_timeout*", "do_select", "default_idle*", "cpu_idle*",
		"do_idle", "intel_idle*", "cpuidle_enter*", "n_tty_read", "sigtimedwait", "do_sigtimedwait"}},
	// A program's lock, condition, pipe or socket: the kernel's stack does not say which or why.
	{signal, 0, anything, 0, []string{"futex_wait*", "pipe_wait*", "sk_wait_data",
		"unix_stream_data_wait", "wait_woken"}},
}
