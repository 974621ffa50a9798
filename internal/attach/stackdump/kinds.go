package stackdump

import "github.com/whystall/whystall/internal/attach"

// Kinds lists the kinds of this room.
func Kinds() []*attach.Kind {
	return []*attach.Kind{gdb, infoThreads, agent, euStack, pmp, jstack, threadDump, pySpy, faultHandler, traceback, crash, dotnet, ruby, safepoint, redisWatchdog, oneTrace,
		gcLog, jstat, jvmHeap, nodeReport, gcMonitor, pySpyTop, hsErr, hsMemory}
}
