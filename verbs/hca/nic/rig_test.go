// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/vishvananda/netlink"
)

func TestMain(m *testing.M) { labtest.Main(m) }

var check, refused = errtest.Check, errtest.Refused

// logged is a log for tests.
type logged struct{ text bytes.Buffer }

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&l.text, nil)) }

func (l *logged) says(text string) bool { return strings.Contains(l.text.String(), text) }

func attrs(name string, mtu int) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = name, mtu
	return a
}
