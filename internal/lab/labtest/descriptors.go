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

// Main is a TestMain that fails if the tests leave file descriptors open. It also removes the
// namespaces of earlier tests that were killed, has more parallel tests run at once than usual, and garbage collected
// less often.
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
		runtime.GC() // closes files that a test has dropped: those of programs that end without closing all
		time.Sleep(10 * time.Millisecond)
	}
	if len(leaked) > 0 {
		fmt.Fprintf(os.Stderr, "FAIL: file descriptors left open: %q\n", leaked)
		code = max(code, 1)
	}
	os.Exit(code)
}

// closing is what the last test may still be closing in, of what it does not wait for: a peer's end.
const closing = 10 * time.Second

// overlap has more parallel tests run at once than there are processors, unless -parallel says how many: most of what
// they do is wait, for the kernel or for a peer.
func overlap() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" || f.Name == "test.fuzz" })
	if given { // to a fuzzer it is how many processes
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(testsAProcessor*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
}

// garbage is how much of it there may be, in percent of what is in use, before it is collected. Tests open and close
// thousands of cards, and keep little: at Go's own 100 a tenth of their processor time is the collector's.
const garbage = 400

// collectLess has the collector come less often than usual, unless the environment says how often.
func collectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// Descriptors counts the open file descriptors of this process by their targets in /proc/self/fd.
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

// Leaked lists the targets that are open after and were not before.
func Leaked(before, after map[string]int) []string {
	var leaked []string
	for target, n := range after {
		for range n - before[target] {
			leaked = append(leaked, target)
		}
	}
	return leaked
}

// startPoller makes the runtime open the descriptors of its own poller. It opens them with the
// first file that can be polled.
func startPoller() {
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}
