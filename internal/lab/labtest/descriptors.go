// SPDX-License-Identifier: Apache-2.0

package labtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/roced/roced/internal/lab"
)

// Main implements TestMain. It fails if the tests leave file descriptors open. It also removes the namespaces of killed
// tests, runs more tests in parallel than Go does by default, and reduces garbage collection.
func Main(m *testing.M) {
	if err := lab.Prune("labtest"); err != nil && os.Geteuid() == 0 {
		fmt.Fprintln(os.Stderr, "namespaces of earlier tests:", err)
	}
	overlap()
	collectLess()
	before := Descriptors()
	code := m.Run()
	leaked := Leaked(before, Descriptors())
	for end := time.Now().Add(closing); len(leaked) > 0 && time.Now().Before(end); leaked = Leaked(before, Descriptors()) {
		runtime.GC() // closes files of programs that exit without closing them
		time.Sleep(10 * time.Millisecond)
	}
	if len(leaked) > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: file descriptors left open: %q\n", leaked)
		code = max(code, 1)
	}
	os.Exit(code)
}

// closing is the time limit for closing descriptors after the last test, which does not wait for its peers.
const closing = 10 * time.Second

// overlap raises the number of parallel tests above the number of processors, unless -parallel is given:
// tests mostly wait for the kernel or for a peer.
func overlap() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" || f.Name == "test.fuzz" })
	if given { // for a fuzzer it is the number of processes
		return
	}
	tests := 4 * runtime.GOMAXPROCS(0)
	if Race {
		tests /= 2
	}
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}

// garbage is the GOGC of tests. They open and close thousands of cards but keep little: with Go's default of
// 100, garbage collection takes a tenth of their processor time.
const garbage = 400

// collectLess sets GOGC unless the environment does.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// Descriptors returns the numbers of open file descriptors of this process by their targets in /proc/self/fd.
func Descriptors() map[string]int {
	startPoller()
	open := map[string]int{}
	paths, _ := filepath.Glob("/proc/self/fd/*")
	for _, path := range paths {
		// The descriptor of the listing itself is closed by now and cannot be read.
		if target, err := os.Readlink(path); err == nil {
			open[target]++
		}
	}
	return open
}

// Leaked returns the targets that are open after but were not before.
func Leaked(before, after map[string]int) []string {
	var leaked []string
	for target, n := range after {
		for range n - before[target] {
			leaked = append(leaked, target)
		}
	}
	return leaked
}

// startPoller makes the runtime open the descriptors of its poller, which it opens with the first pollable
// file.
func startPoller() {
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}
