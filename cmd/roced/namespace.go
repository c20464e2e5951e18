package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netns"
)

// namespacePath is the file of a network namespace: of a name as ip-netns(8) gives it,
// or a path as it is. Empty stands for the process's own.
func namespacePath(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	return filepath.Join("/run/netns", name)
}

// inNamespace runs fn on a thread inside the network namespace of a file. Sockets
// that fn opens stay in it, goroutines that it starts are outside. The thread ends
// afterwards, so it need not find its way back.
func inNamespace(path string, fn func() error) error {
	if path == "" {
		return fn()
	}
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w; ip netns list shows what there is", path, err)
	}
	defer ns.Close()
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(ns); err != nil {
			result <- fmt.Errorf("enter network namespace %s: %w", path, err)
			return
		}
		result <- fn()
	}()
	return <-result
}
