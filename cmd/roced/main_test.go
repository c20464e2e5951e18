// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/cmdtest"
)

func TestMain(m *testing.M) { cmdtest.Main(m, commands) }

// TestWrongCommandLines uses an interface that does not exist, so that an undetected error has no effect on the host.
func TestWrongCommandLines(t *testing.T) {
	for _, row := range []struct {
		args string
		want string
	}{
		{"foo", `unknown command "foo"`},
		{"pign", `unknown command "pign"; did you mean ping?`},
		{"pnig -d eth0", `unknown command "pnig"; did you mean ping?`},
		{"show link --socket x", `unknown command "link" of roced show; see roced show --help`},
		{"config chekc --config x", `unknown command "chekc" of roced config; did you mean check?`},
		{"show mw", `unknown command "mw" of roced show; did you mean mr? see roced`},
		{"show xx", `unknown command "xx" of roced show; see roced show --help`},
		{"help foo", `unknown command "foo"`},
		{"help show gids", `"gids" of roced show; did you mean gid?`},
		{"help ping x", "roced ping has no subcommands"},
		{"completion foo", `unknown command "foo" of roced completion`},
		{"completion bash x", "no arguments"},
		{"cdi foo", `unknown command "foo" of roced cdi`},
		{"config chek", `"chek" of roced config; did you mean check?`},
		{"socket lsit", `"lsit" of roced socket; did you mean list?`},
		{"show foo", `unknown command "foo" of roced show`},
		{"show qp x", "no arguments"},
		{"netdev -d nowhere0 x", "no arguments"},
		{"monitor x", "no arguments"},
		{"dump x", "no arguments"},
		{"doctor x", "no arguments"},
		{"run x", "no arguments"},
		{"config example x", "no arguments"},
		{"socket list x", "no arguments"},
		{"exec", "no program given"},
		{"exec --socket /no/such.sock --loss 1% true", "--loss requires a private service and cannot be combined with --socket"},
		{"exec --network udp --loss 1% true", "--loss requires --network loopback, not udp"},
		{"exec --network udp --hosts 2 true", "--hosts requires --network loopback, not udp"},
		{"perf -d nowhere0 ::1 --sizes 5k", "--sizes must be 0 to 4096 bytes"},
		{"perf -d nowhere0 ::1 --sizes 1,5k", "--sizes must be 0 to 4096 bytes"},
		{"perf -d nowhere0 ::1 --sizes 64q", `--sizes: "64q" is not a number of bytes, such as 4096, 64k or 1M`},
		{"perf -d nowhere0 --rc --bandwidth --sizes 9M", "--sizes must be 0 to 8388608 bytes"},
		{"ping -d nowhere0 -s 5k", "--size must be 0 to 4096 bytes"},
		{"ping -d nowhere0 --rc -s 2M", "--size must be 0 to 1048576 bytes"},
		{"ping -d nowhere0 -c 0", "--count must be 1 to 10000000 messages: 0"},
		{"mcast -d nowhere0 239.1.2.3 --send --size 5K", "--size must be from 0 to 4096 bytes, the largest RDMA MTU: 5120"},
		{"dump -w /dev/null -s -1", "--snaplen must not be negative: -1"},
		{"--nonsense", "unknown flag"},
		{"--log-level loud version", "log-level"},
		{"demo x", "no arguments"},
		{"demo --count 0", "at least 1"},
		{"demo --count x", "--count"},
		{"version x", "no arguments"},
		{"perf", "no interface given"},
		{"perf 10.0.0.1", "no interface given"},
		{"perf -d nowhere0 a b", "one HOST"},
		{"perf -d nowhere0 --json", "on the client"},
		{"perf -d nowhere0 --sizes 1", "on the client"},
		{"perf -d nowhere0 ::1 --once", "on the server"},
		{"perf -d nowhere0 ::1 -p 0", "--port must be from 1 to 65535"},
		{"perf -d nowhere0 -p 65536", "--port must be from 1 to 65535"},
		{"perf -d nowhere0 -g -2", "gid-index"},
		{"perf -d nowhere0 ::1 --duration 0s", "duration"},
		{"perf -d nowhere0 ::1 --duration 25h", "duration"},
		{"perf -d nowhere0 ::1 --count 0", "count"},
		{"perf -d nowhere0 ::1 --sizes -1", "sizes"},
		{"perf -d nowhere0 ::1 --sizes 4097", "maximum RDMA MTU"},
		{"perf -d nowhere0 ::1 --sizes x", "sizes"},
		{"perf -d nowhere0 --group 239.1.2.3", "with --perftest"},
		{"perf -d nowhere0 ::1 --rate 1", "with --perftest"},
		{"perf -d nowhere0 --perftest", "--perftest needs --bandwidth or --latency"},
		{"perf -d nowhere0 --perftest --bandwidth --latency", "not both"},
		{"perf -d nowhere0 --perftest --latency --once", "--once cannot be used"},
		{"perf -d nowhere0 ::1 --perftest --latency --duration 1s", "--duration cannot be used"},
		{"perf -d nowhere0 --perftest --latency --sizes 1,2", "measure one message size"},
		{"perf -d nowhere0 --perftest --latency --sizes 4097", "maximum RDMA MTU"},
		{"perf -d nowhere0 --perftest --latency --timeout 0s", "timeout"},
		{"perf -d nowhere0 ::1 --perftest --bandwidth --rate -1", "rate"},
		{"perf -d nowhere0 --perftest --bandwidth --rate 1", "is the sender"},
		{"perf -d nowhere0 ::1 --perftest --latency --rate 1", "is the sender"},
		{"perf -d nowhere0 ::1 --perftest --bandwidth --group 239.1.2.3", "is only for receivers"},
		{"perf -d nowhere0 --perftest --bandwidth --group 10.0.0.1", "not a multicast address"},
		{"perf -d nowhere0 --op read", "with --rc or --uc"},
		{"perf -d nowhere0 --perftest --bandwidth --qps 2", "with --rc or --uc"},
		{"perf -d nowhere0 --rc", "--rc needs --bandwidth or --latency"},
		{"perf -d nowhere0 --rc --uc --bandwidth", "cannot be used together"},
		{"perf -d nowhere0 --rc --bandwidth --op add", "send, write, read, atomic or swap"},
		{"perf -d nowhere0 --uc --bandwidth --op read", "needs --rc"},
		{"perf -d nowhere0 --uc --latency --op atomic", "needs --rc"},
		{"perf -d nowhere0 --rc --bandwidth --op atomic -s 16", "must be 8 for atomics"},
		{"perf -d nowhere0 --rc --bandwidth --sizes 8388609", "sizes"},
		{"perf -d nowhere0 --rc --bandwidth --mtu 1500", "2048 or 4096: "},
		{"perf -d nowhere0 --rc --bandwidth --count 0", "1 to 10000000 messages"},
		{"perf -d nowhere0 --rc --latency --count 0", "1 to 10000000 round trips"},
		{"perf -d nowhere0 --uc --latency --bandwidth", "--uc makes one measurement"},
		{"perf -d nowhere0 --rc --bandwidth --qps 0", "qps"},
		{"perf -d nowhere0 --rc --latency --qps 2", "--latency uses one queue pair"},
		{"perf -d nowhere0 --rc --bandwidth --depth 0", "depth"},
		{"perf -d nowhere0 --rc --bandwidth --ack-timeout 0s", "--ack-timeout must be positive: 0s"},
		{"perf -d nowhere0 --uc --bandwidth --ack-timeout 1s", "--ack-timeout requires --rc"},
		{"perf -d nowhere0 --rc --latency --op write --sleep", "does not wake up"},
		{"perf -d nowhere0 --rc --latency --op write -s 0", "cannot detect an empty one"},
		{"perf -d nowhere0 --rc --bandwidth --rate 5", "with datagrams"},
		{"perf -d nowhere0 --rc --bandwidth --duration 1s", "--duration cannot be used"},
		{"ping", "no interface given"},
		{"ping -d nowhere0 a b", "one HOST"},
		{"ping -d nowhere0 ::1 -p 0", "--port must be from 1 to 65535"},
		{"ping -d nowhere0 -g -2", "gid-index"},
		{"ping -d nowhere0 -s -1", "maximum RDMA MTU"},
		{"ping -d nowhere0 -s 4097", "maximum RDMA MTU"},
		{"ping -d nowhere0 -n 0", "count"},
		{"ping -d nowhere0 -r 0", "rx-depth"},
		{"ping -d nowhere0 -r 16385", "rx-depth"},
		{"ping -d nowhere0 -W 0s", "timeout"},
		{"ping -d nowhere0 --tclass 256", "tclass"},
		{"mcast -d nowhere0", "one GROUP"},
		{"mcast -d nowhere0 239.1.2.3 239.1.2.4", "one GROUP"},
		{"netdev -d nowhere0 --group 10.0.0.1", "--group 10.0.0.1 is not a multicast address"},
		{"dump --group all-hosts", "--group \"all-hosts\" is not an IP address"},
		{"run --loopback --metrics 9464", "must be unix:PATH or HOST:PORT"},
		{"mcast 239.1.2.3", "no interface given"},
		{"mcast -d nowhere0 all-hosts", "not an IP address"},
		{"mcast -d nowhere0 10.0.0.1", "not a multicast address"},
		{"mcast -d nowhere0 fd77::1", "not a multicast address"},
		{"mcast -d nowhere0 ff02::1%eth1", "is interface eth1, but -d selects nowhere0"},
		{"mcast -d nowhere0 ff00::1", "ff02::/16 is the link's"},
		{"mcast -d nowhere0 ff01::1 --send", "ff02::/16 is the link's"},
		{"mcast -d nowhere0 239.1.2.3 --xdp offload", "auto native generic"},
		{"perf -d nowhere0 --copy --zerocopy", "cannot be combined"},
		{"ping -d nowhere0 --xdp generic --zerocopy", "--zerocopy and --xdp generic cannot be combined"},
		{"demo --copy --zerocopy", "cannot be combined"},
		{"ping -d nowhere0 --network tcp", "one of auto xdp udp"},
		{"ping -d nowhere0 --network udp --xdp native", "--network udp and --xdp native cannot be combined"},
		{"perf -d nowhere0 --network udp --tx trains", "--network udp and --tx trains cannot be combined"},
		{"mcast -d nowhere0 239.1.2.3 --network udp --copy", "--network udp and --copy cannot be combined"},
		{"mcast -d nowhere0 239.1.2.3 --network udp --membership netlink", "--network udp and --membership netlink cannot be combined"},
		{"demo --network udp --zerocopy", "--network udp and --zerocopy cannot be combined"},
		{"doctor --network tcp", "one of auto xdp udp"},
		{"run -d nowhere0 --network tcp", "one of auto xdp udp"},
		{"run --network xdp", "--network requires --device"},
		{"show gids", "unknown command \"gids\" of roced show; did you mean gid?"},
		{"show gid", "no interface given"},
		{"show gid -d nowhere0 x", "no arguments"},
		{"mcast -d nowhere0 239.1.2.3 --send-only", "requires --send"},
		{"mcast -d nowhere0 239.1.2.3 --size 1", "requires --send"},
		{"mcast -d nowhere0 239.1.2.3 --rate 1", "requires --send"},
		{"mcast -d nowhere0 239.1.2.3 --loopback", "requires --send"},
		{"mcast -d nowhere0 239.1.2.3 --send --send-only --loopback", "do not receive"},
		{"mcast -d nowhere0 239.1.2.3 --count -1", "--count must not be negative: -1"},
		{"mcast -d nowhere0 239.1.2.3 --send --size 4097", "largest RDMA MTU"},
		{"mcast -d nowhere0 239.1.2.3 --send --size -1", "largest RDMA MTU"},
		{"mcast -d nowhere0 239.1.2.3 --send --rate -1", "messages per second: -1"},
		{"mcast -d nowhere0 239.1.2.3 --send -g -2", "gid-index"},
		{"mcast -d nowhere0 239.1.2.3 --send --imm qp", "must be qpn or none, or must be a 32-bit number"},
		{"mcast -d nowhere0 239.1.2.3 --send --imm 0x100000000", "32-bit number"},
		{"mcast -d nowhere0 239.1.2.3 --qkey -1", "32-bit number"},
		{"mcast -d nowhere0 239.1.2.3 --membership magic", "auto, netlink or socket"},
	} {
		cmdtest.CheckFailure(t, strings.Fields(row.args), cli.ExitUsage, row.want)
	}
}

func TestVersionAndHelp(t *testing.T) {
	for args, want := range map[string]string{"version": "roced ", "": "Available Commands", "help perf": "--netns", "demo --help": "--count", "help mcast": "0x11111111", "help ping": "ibv_ud_pingpong", "perf --help": "perftest 6.06"} {
		code, stdout, stderr := cmdtest.Run(t, strings.Fields(args)...)
		if code != 0 || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("%q: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// TestErrorsAreOneLine: joined errors are printed on one line.
func TestErrorsAreOneLine(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr bytes.Buffer
	if code := cli.Run(ctx, commands, []string{"foo\nbar"}, io.Discard, &stderr); code != cli.ExitUsage {
		t.Errorf("exit code %d", code)
	}
	if strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("%q is not one line", stderr.String())
	}
}
