package membership

import (
	"fmt"
	"runtime"

	"github.com/roced/roced/internal/journal"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// space is a network namespace to open sockets in.
type space struct {
	// calls go to a thread that stays inside, so that entering takes CAP_SYS_ADMIN only
	// once. It is nil for the caller's own namespace.
	calls chan func()
	id    journal.Namespace
}

// enterSpace enters a network namespace, named by its file, or takes the caller's.
func enterSpace(path string) (*space, error) {
	s := &space{}
	if path != "" {
		if err := s.enter(path); err != nil {
			return nil, err
		}
	}
	if err := s.do(s.identify); err != nil {
		s.leave()
		return nil, err
	}
	return s, nil
}

func (s *space) enter(path string) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w; ip netns list shows what there is", path, err)
	}
	defer ns.Close()
	s.calls = make(chan func())
	entered := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := netns.Set(ns)
		entered <- err
		if err != nil {
			return
		}
		for call := range s.calls {
			call()
		}
	}()
	if err := <-entered; err != nil {
		return fmt.Errorf("enter network namespace %s: %w (it needs CAP_SYS_ADMIN)", path, err)
	}
	return nil
}

func (s *space) leave() {
	if s.calls != nil {
		close(s.calls)
	}
}

// do runs fn on a thread inside the namespace.
func (s *space) do(fn func() error) error {
	if s.calls == nil {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return fn()
	}
	result := make(chan error)
	s.calls <- func() { result <- fn() }
	return <-result
}

func (s *space) identify() (err error) {
	s.id, err = journal.ThisNamespace()
	return err
}

// checkSpace refuses a socket that the caller's thread opened in another namespace:
// the interface's index means another interface there.
func checkSpace(fd int, want uint64) error {
	cookie, err := journal.CookieOf(fd)
	if err == nil && cookie != want {
		err = fmt.Errorf("%w: the calling thread is in another network namespace than at Open", unix.EXDEV)
	}
	return err
}
