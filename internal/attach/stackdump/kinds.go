package stackdump

import "github.com/whystall/whystall/internal/attach"

// Kinds lists the kinds of this room.
func Kinds() []*attach.Kind {
	return []*attach.Kind{gdb, gdbMutex, infoThreads, pyBT, agent, euStack, coreStacks, pmp, jstack, deadStacks, threadDump, pySpy,
		pyStack, pyTimeout, faultHandler, traceback, crash, javaCore, dotnet, dotnetDump, ruby, puma, safepoint,
		redisWatchdog, gameWatchdog, oneTrace,
		macSample, lldb, gcLog, jstat, jvmHeap, nodeReport, gcMonitor, v8GC, pySpyTop, hsErr, hsMemory,
		windows, erlang, phpSlow, jsonThreads}
}
