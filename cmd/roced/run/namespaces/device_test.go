package namespaces

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/server"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// TestProgramsInARow: a program that comes while the last one's card is closed gets the next card, not an error.
func TestProgramsInARow(t *testing.T) {
	t.Parallel()
	host := labtest.Pair(t).A
	var stat unix.Stat_t
	if err := unix.Stat(host.Path(), &stat); err != nil {
		t.Fatal(err)
	}
	caller := &server.Caller{Namespace: server.Namespace{Device: stat.Dev, Inode: stat.Ino}, Path: host.Path()}
	d, err := New(config.Namespaces{Device: "net0", Network: hca.NetworkUDP, Cards: 1, UserCards: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ended := time.Now().Add(2 * time.Second)
	var programs sync.WaitGroup
	for range 3 {
		programs.Go(func() {
			for time.Now().Before(ended) {
				session, err := d.NewSessionOf(caller, hca.SessionConfig{})
				if err == nil {
					err = session.Close()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	programs.Wait()
}
