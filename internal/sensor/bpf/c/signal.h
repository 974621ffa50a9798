// SIGURG, with which Go's runtime asks a thread to stop: sent and delivered.
#pragma once
#include "record.h"

#define SIGURG 23

SEC("tp_btf/signal_generate")
int signal_generate(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2];
	if ((int)ctx[0] != SIGURG || t->tgid != target)
		return 0;
	struct task_struct *by = get_current_task_btf();
	tell(K_SIGNAL, F_OTHER_TARGET | (by->tgid == target ? F_TARGET : 0), by->pid, t->pid, 0);
	return 0;
}

SEC("tp_btf/signal_deliver")
int signal_deliver(u64 *ctx)
{
	struct task_struct *t = get_current_task_btf();
	if ((int)ctx[0] == SIGURG && t->tgid == target)
		tell(K_DELIVERED, F_TARGET, t->pid, 0, 0);
	return 0;
}
