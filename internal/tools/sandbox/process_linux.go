package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ProcessName identifies a process among all that ever ran on this machine
// since its start: namespace, id, start time. It is empty if there is no process
// with that id.
func ProcessName(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	space, wrong := os.Readlink("/proc/self/ns/pid")
	after := stat[bytes.LastIndexByte(stat, ')')+1:] // the name before it may contain anything
	fields := strings.Fields(string(after))
	const startTime = 22 - 3 // proc(5) counts from 1, and after begins with the third field
	if err != nil || wrong != nil || len(fields) <= startTime || fields[0] == "Z" {
		return ""
	}
	return space + " " + strconv.Itoa(pid) + " " + fields[startTime]
}
