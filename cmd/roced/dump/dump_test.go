// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/ud"
)

// endpoint opens an endpoint on a device of a service, as a program does.
func endpoint(t *testing.T, socket, device string) *ud.Endpoint {
	t.Helper()
	session, err := client.Dial(socket, device)
	if err != nil {
		t.Fatal(err)
	}
	c, err := verbs.Open(session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	e, err := ud.New(c, ud.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// TestDump: each packet is written at once, with its outcome.
func TestDump(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	left, right := endpoint(t, socket, "left"), endpoint(t, socket, "right")
	file := filepath.Join(t.TempDir(), "x.pcapng")
	b := cmdtest.Start(t, "dump", "--socket", socket, "-d", "right", "-w", file)
	holds := func(text string) bool {
		written, _ := os.ReadFile(file)
		return bytes.Contains(written, []byte(text))
	}
	for end := time.Now().Add(waittest.Limit); !holds("delivered to QP 0x"); time.Sleep(time.Millisecond) {
		if err := left.Send(t.Context(), right.LocalAddr(), []byte("to be seen")); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("no packet is written")
		}
	}
	if !holds("to be seen") || !holds("right") {
		t.Error("the file has neither the payload nor the device's name")
	}
	b.End(t)
}

func TestDumpErrors(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	args := func(rest string) []string {
		return strings.Fields("dump -w /dev/null --socket " + socket + " " + rest)
	}
	cmdtest.CheckFailure(t, args(""), cli.ExitFailed, "select a device with -d", `"left"`)
	cmdtest.CheckFailure(t, args("-d eth9"), cli.ExitFailed, `no device "eth9"`)
	cmdtest.CheckFailure(t, args("-d left --qp 0x1000000"), cli.ExitUsage, "--qp must be from 1 to 0xffffff")
	cmdtest.CheckFailure(t, args("-d left --group 10.0.0.1"), cli.ExitUsage, "not a multicast address")
}
