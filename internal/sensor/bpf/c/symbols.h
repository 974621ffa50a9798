// Names of the kernel's functions, for reading stacks: asked one by one they cost a microsecond
// each, while reading /proc/kallsyms takes a tenth of a second. Only the recorder calls these
// programs.
#pragma once
#include "helpers.h"

#define SYMBOLS 64

struct symbol {
	u64 addr;
	char text[248]; // "futex_wait+0x65/0x120", and " [module]"
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SYMBOLS);
	__type(key, u32);
	__type(value, struct symbol);
} symbols SEC(".maps");

static const char symbol_format[] = "%pS";

// symbol_names fills in the texts of the addresses up to the first that is 0.
SEC("syscall")
int symbol_names(void *ctx)
{
	for (u32 i = 0; i < SYMBOLS; i++) {
		u32 at = i;
		struct symbol *s = map_lookup(&symbols, &at);
		if (!s || !s->addr)
			break;
		snprintf(s->text, sizeof(s->text), symbol_format, &s->addr, sizeof(s->addr));
	}
	return 0;
}

// symbol_address fills in the address of the first text's function; -EPERM if addresses are hidden
// from the caller.
SEC("syscall")
int symbol_address(void *ctx)
{
	u32 at = 0;
	struct symbol *s = map_lookup(&symbols, &at);
	if (!s)
		return 0;
	u64 addr = 0;
	long err = kallsyms_lookup_name(s->text, sizeof(s->text), 0, &addr);
	s->addr = addr;
	return err;
}
