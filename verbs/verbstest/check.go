package verbstest

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

// waitTimeout bounds every wait, so that a hang fails the test. No test measures time.
const waitTimeout = time.Minute

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused checks that an error is the one that is wanted, and says what it should.
func refused(t testing.TB, err, want error, says ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

// eventually waits for something that the card or another goroutine does.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not come", what)
		}
	}
}

// guard ends a wait that hangs.
func guard(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	t.Cleanup(cancel)
	return ctx
}

// watched is a context that tells when somebody waits on it.
type watched struct {
	context.Context
	asked chan struct{} // of capacity 1
}

func watch(ctx context.Context) *watched { return &watched{ctx, make(chan struct{}, 1)} }

// Done is asked for by those who are about to sleep.
func (w *watched) Done() <-chan struct{} {
	select {
	case w.asked <- struct{}{}:
	default:
	}
	return w.Context.Done()
}

// waiting starts n goroutines in a call that waits with a context, and returns when all of them do. What
// they gave comes through the channel.
func waiting(ctx context.Context, t testing.TB, n int, wait func(ctx context.Context) error) <-chan error {
	t.Helper()
	done := make(chan error, n)
	for range n {
		own := watch(ctx)
		go func() { done <- wait(own) }()
		select {
		case <-own.asked:
		case <-ctx.Done():
			t.Fatal("nobody waits")
		}
	}
	return done
}

func gid(address netip.Addr) verbs.GID { return verbs.GIDFromAddr(address) }

// outcome is what a completion says first.
type outcome struct {
	id     uint64
	status verbs.WCStatus
}

func ok(id uint64) outcome { return outcome{id, verbs.WCSuccess} }

func flushed(id uint64) outcome { return outcome{id, verbs.WCWRFlushErr} }

// same compares completions by id and status.
func same(t testing.TB, got []verbs.WC, want ...outcome) {
	t.Helper()
	bad := len(got) != len(want)
	for i := 0; !bad && i < len(got); i++ {
		bad = got[i].ID != want[i].id || got[i].Status != want[i].status
	}
	if bad {
		t.Errorf("completions %+v, want %+v", got, want)
	}
}

// completions polls a queue until it is empty.
func completions(t testing.TB, cq *verbs.CQ) (all []verbs.WC) {
	t.Helper()
	for {
		var wcs [16]verbs.WC
		n, err := cq.Poll(wcs[:])
		check(t, err)
		if all = append(all, wcs[:n]...); n == 0 {
			return all
		}
	}
}
