//go:build linux

package hca

import "github.com/roced/roced/internal/host"

// RunIn runs fn on a thread inside a network namespace, named by its file. Sockets
// that fn opens stay in it, goroutines that it starts are outside. The thread is not
// used for anything else afterwards: it ends with its goroutine. With no file it is
// the caller's own thread, which takes no privilege.
func RunIn(path string, fn func() error) error {
	namespace, err := host.Enter(path)
	if err != nil {
		return err
	}
	defer namespace.Close()
	return namespace.Do(fn)
}
