package main

import (
	"path/filepath"
	"strings"
)

// namespacePath is the file of a network namespace: of a name as ip-netns(8) gives it,
// or a path as it is. Empty stands for the process's own.
func namespacePath(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return filepath.Join("/run/netns", name)
}
