// SPDX-License-Identifier: Apache-2.0

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

// access determines the callers that are allowed to have a card.
type access struct {
	users  map[uint32]bool // nil: all users that can connect
	folder string          // directory of the allowed namespaces' names; empty: any namespace
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
		return 0, fmt.Errorf("%w: namespaces.users: unknown user %q", unix.ENOENT, name)
	}
	n, err := strconv.ParseUint(found.Uid, 10, 32)
	return uint32(n), err
}

// check returns an error unless the caller is allowed to have a card in its namespace.
func (a *access) check(caller *peer.Caller) error {
	if a.users != nil && !a.users[caller.Owner] {
		return fmt.Errorf("%w: user %d is not allowed to open devices in its network namespace (add it to namespaces.users)", verbs.ErrPermission, caller.Owner)
	}
	if a.folder != "" && !a.has(caller.Namespace) {
		return fmt.Errorf("%w: the caller's network namespace is not listed in %s (namespaces.folder)", verbs.ErrPermission, a.folder)
	}
	return nil
}

// has reports whether the directory has a name for the namespace. It is read each time because names change.
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
