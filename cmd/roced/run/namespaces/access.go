package namespaces

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/roced/roced/cmd/roced/internal/config"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/server/peer"
	"golang.org/x/sys/unix"
)

// access says who may have a card.
type access struct {
	users  map[uint32]bool // nil: any who may connect
	folder string          // with the namespaces' names; empty: any namespace
}

func newAccess(c config.Namespaces) (a access, err error) {
	a.folder = c.Folder
	for name := range strings.SplitSeq(c.Users, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		uid, err := userID(name)
		if err != nil {
			return a, err
		}
		if a.users == nil {
			a.users = map[uint32]bool{}
		}
		a.users[uid] = true
	}
	return a, nil
}

func userID(name string) (uint32, error) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n), nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		return 0, fmt.Errorf("%w: namespaces.users: there is no user %q", unix.ENOENT, name)
	}
	n, err := strconv.ParseUint(found.Uid, 10, 32)
	return uint32(n), err
}

// check says whether a caller may have a card in its namespace.
func (a *access) check(caller *peer.Caller) error {
	if a.users != nil && !a.users[caller.Owner] {
		return fmt.Errorf("%w: user %d may have no card in its network namespace; namespaces.users says who may", verbs.ErrPermission, caller.Owner)
	}
	if a.folder != "" && !a.has(caller.Namespace) {
		return fmt.Errorf("%w: the caller's network namespace has no name in %s (namespaces.folder)", verbs.ErrPermission, a.folder)
	}
	return nil
}

// has says whether a namespace has a name in the folder. Names come and go, so they are looked at each time.
func (a *access) has(n peer.Namespace) bool {
	names, err := os.ReadDir(a.folder)
	if err != nil {
		return false
	}
	for _, name := range names {
		var stat unix.Stat_t
		if unix.Stat(filepath.Join(a.folder, name.Name()), &stat) == nil && stat.Dev == n.Device && stat.Ino == n.Inode {
			return true
		}
	}
	return false
}
