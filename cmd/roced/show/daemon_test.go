// SPDX-License-Identifier: Apache-2.0

package show

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/client"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server"
	"github.com/roced/roced/verbs/server/admin"
)

// guest opens a device of a service, as a program with one object of each kind, and returns its queue pair.
func guest(t *testing.T, socket, device string) *verbs.QP {
	t.Helper()
	session, err := client.Dial(socket, device)
	check(t, err)
	c, err := verbs.Open(session)
	check(t, err)
	t.Cleanup(func() { check(t, c.Close()) })
	pd, err := c.AllocPD()
	check(t, err)
	cq, err := c.CreateCQ(64)
	check(t, err)
	_, err = pd.AllocMR(4096, verbs.AccessLocalWrite)
	check(t, err)
	_, err = pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 16})
	check(t, err)
	qp, err := pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64}})
	check(t, err)
	check(t, qp.Activate(0x4321))
	_, err = pd.CreateAH(t.Context(), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 15: 2}}})
	check(t, err)
	check(t, qp.AttachMcast(verbs.GID{0: 0xff, 1: 0x0e, 15: 9}, 0))
	channel, err := cm.CreateEventChannel(c)
	check(t, err)
	id, err := channel.CreateID(cm.PortSpaceUDP, nil)
	check(t, err)
	check(t, id.Bind(netip.MustParseAddrPort("0.0.0.0:7174")))
	check(t, id.Listen(0))
	t.Cleanup(func() {
		check(t, id.Close())
		check(t, channel.Close())
	})
	return qp
}

var check = errtest.Check

// TestShowObjects: each subcommand lists the program's object, as text and as JSON.
func TestShowObjects(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	qp := guest(t, socket, "left")
	for noun, want := range map[string]string{
		"dev":    "right right 0000:00ff:fe00:000",
		"port":   "left/1 ACTIVE LINK_UP left 4096",
		"client": " left ",
		"pd":     "left 131072 4 1 ",
		"cq":     "left 131072 0/64 2 OK 1 ",
		"qp":     fmt.Sprintf("left 0x%06x UD RTS 0x00004321 0/64 0/64 1 131072", uint32(qp.Number())),
		"srq":    "left 131072 0/16 0 0 131072",
		"mr":     " 4096 0x0 write 131072",
		"ah":     "left 131072 ::ffff:10.77.0.1 ::ffff:10.77.0.2 OK 131072",
		"cm":     "left 131072 UDP UD LISTEN 0.0.0.0:7174 - 0 0 ",
		"mcast":  fmt.Sprintf("left ff0e::9 attached 0x%06x 0x0000", uint32(qp.Number())),
	} {
		code, stdout, stderr := cmdtest.Run(t, "show", noun, "--socket", socket)
		if code != 0 || stderr != "" || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("%s: exit code %d: %s%s\nwant %s", noun, code, stdout, stderr, want)
		}
		code, stdout, _ = cmdtest.Run(t, "show", noun, "-j", "--socket", socket, "-d", "left")
		var lines []struct {
			Device string `json:"ifname"`
		}
		if err := json.Unmarshal([]byte(stdout), &lines); err != nil || code != 0 || len(lines) != 1 || lines[0].Device != "left" {
			t.Errorf("%s: %v in %s", noun, err, stdout)
		}
		_, stdout, _ = cmdtest.Run(t, "show", noun, "-j", "--socket", socket, "-d", "right")
		if noun != "dev" && noun != "port" && stdout != "[]\n" {
			t.Errorf("%s of a device without clients: %s", noun, stdout)
		}
	}
}

func TestShowStat(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	_, some, _ := cmdtest.Run(t, "show", "stat", "--socket", socket)
	_, all, _ := cmdtest.Run(t, "show", "stat", "-a", "-d", "left", "--socket", socket)
	if lines := strings.Count(some, "\n"); lines != 1 || !strings.Contains(all, "drop_qkey") || strings.Contains(all, "right") {
		t.Errorf("%s\n%s", some, all)
	}
	var counters []statRow
	_, stdout, _ := cmdtest.Run(t, "show", "stat", "-j", "--socket", socket)
	if err := json.Unmarshal([]byte(stdout), &counters); err != nil || len(counters) < 100 || counters[0].Device == "" || counters[0].Name == "" {
		t.Errorf("%v: %d counters", err, len(counters))
	}
}

// TestShowGIDOfTheDaemon: the GIDs of all devices, or of one.
func TestShowGIDOfTheDaemon(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	_, all, _ := cmdtest.Run(t, "show", "gid", "--socket="+socket)
	_, one, _ := cmdtest.Run(t, "show", "gid", "-d", "left", "--socket="+socket)
	cmdtest.CheckSays(t, all, "::ffff:10.77.0.1", "::ffff:10.77.0.2")
	if strings.Contains(one, "10.77.0.2") || !strings.Contains(one, "10.77.0.1") {
		t.Error(one)
	}
}

// TestShowWatch: with --watch, the list is refreshed until the command is stopped.
func TestShowWatch(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	b := cmdtest.Start(t, "show", "qp", "--watch=1ms", "--socket", socket)
	apart := cmdtest.Start(t, "show", "qp", "--watch", "1ms", "--socket", socket)
	b.Await(t, "LQPN")
	apart.Await(t, "LQPN")
	qp := guest(t, socket, "left")
	b.Await(t, fmt.Sprintf("0x%06x", uint32(qp.Number())))
	apart.Await(t, fmt.Sprintf("0x%06x", uint32(qp.Number())))
	b.End(t)
	apart.End(t)
	cmdtest.CheckFailure(t, []string{"show", "qp", "1ms", "--socket", socket}, cli.ExitUsage, "accepts no arguments")
}

// absent is a device without a card.
type absent struct{ server.Source }

func (absent) Name() string { return "absent" }

func (absent) Do(context.Context, provider.Code, any, any) error {
	return &admin.NoCardError{Device: "absent", Cause: errors.New("it is not plugged in")}
}

// TestShowWithoutCard: the reason is printed once, in the last column; other failures are errors.
func TestShowWithoutCard(t *testing.T) {
	t.Parallel()
	socket := cmdtest.Serve(t, absent{})
	for noun, want := range map[string]string{
		"dev": "absent - - NO CARD - - - - - it is not plugged in", "port": "absent/1 NO CARD - - - - - it is not plugged in",
	} {
		code, stdout, _ := cmdtest.Run(t, "show", noun, "--socket", socket)
		if code != 0 || !strings.HasSuffix(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("%s: exit code %d: %s", noun, code, stdout)
		}
	}
	cmdtest.CheckFailure(t, []string{"show", "gid", "-d", "absent", "--socket", socket}, cli.ExitFailed, "absent has no card: it is not plugged in")
	if code, stdout, _ := cmdtest.Run(t, "show", "gid", "--socket", socket); code != 0 || strings.Count(stdout, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	cmdtest.CheckFailure(t, []string{"show", "dev", "--socket", cmdtest.Serve(t, mute{})}, cli.ExitFailed, "only programs that open")
}

// mute is a device that does not report its attributes.
type mute struct{ server.Source }

func (mute) Name() string { return "mute" }

func TestShowDaemonErrors(t *testing.T) {
	t.Parallel()
	socket := cmdtest.ServeMemory(t)
	cmdtest.CheckFailure(t, []string{"show", "qp", "--socket", "/no/such.sock"}, cli.ExitFailed, "check that it is running")
	cmdtest.CheckFailure(t, []string{"show", "qp", "--socket", socket, "-d", "eth9"}, cli.ExitFailed, `no device "eth9"`, `"left"`)
	cmdtest.CheckFailure(t, []string{"show", "qp", "--socket", socket, "--watch=-1s"}, cli.ExitUsage, "--watch")
	cmdtest.CheckFailure(t, []string{"show", "nothing"}, cli.ExitUsage, `unknown command "nothing" of roced show`)
}

// TestShowNetwork: show dev lists the kind of network, and the reason why trains are not used.
func TestShowNetwork(t *testing.T) {
	t.Parallel()
	for way, want := range map[hca.Network]string{hca.NetworkUDP: "ACTIVE udp none udp trains", hca.NetworkXDP: "ACTIVE xdp native copy af_xdp"} {
		hosts := labtest.Pair(t)
		card, err := hca.Open("eth0", hca.InNamespace(hosts.A.Path()), hca.WithNetwork(way), hca.WithoutInline())
		if err != nil {
			t.Fatal(err)
		}
		socket := cmdtest.Serve(t, card)
		t.Cleanup(func() { card.Close() })
		code, stdout, stderr := cmdtest.Run(t, "show", "dev", "--socket", socket)
		if code != 0 || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) || strings.Contains(stdout, "no packet trains: ") != (way == hca.NetworkXDP) {
			t.Errorf("%s: exit code %d: %s%s", way, code, stderr, stdout)
		}
		_, stdout, _ = cmdtest.Run(t, "show", "dev", "-j", "--socket", socket)
		var rows []struct {
			Network  string `json:"network"`
			NoTrains string `json:"no_trains"`
		}
		if err := json.Unmarshal([]byte(stdout), &rows); err != nil || len(rows) != 1 || rows[0].Network != string(way) || (rows[0].NoTrains == "") != (way == hca.NetworkUDP) {
			t.Errorf("%s: %v: %s", way, err, stdout)
		}
	}
}
