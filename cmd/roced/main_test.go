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

// TestWrongCommandLines: if a mistake were not found, there is no interface that could be touched.
func TestWrongCommandLines(t *testing.T) {
	for _, row := range []struct {
		args string
		want string
	}{
		{"foo", `unknown command "foo"`},
		{"pign", `unknown command "pign"; did you mean ping?`},
		{"pnig -d eth0", `unknown command "pnig"; did you mean ping?`},
		{"show link --socket x", `unknown command "link" of roced show; roced show --help`},
		{"config chekc --config x", `unknown command "chekc" of roced config; did you mean check?`},
		{"show mw", `unknown command "mw" of roced show; did you mean mr? roced`},
		{"show xx", `unknown command "xx" of roced show; roced show --help`},
		{"help foo", `unknown command "foo"`},
		{"help show gids", `"gids" of roced show; did you mean gid?`},
		{"help ping x", "roced ping has no subcommands"},
		{"completion foo", `unknown command "foo" of roced completion`},
		{"completion bash x", "no argument"},
		{"cdi foo", `unknown command "foo" of roced cdi`},
		{"config chek", `"chek" of roced config; did you mean check?`},
		{"socket lsit", `"lsit" of roced socket; did you mean list?`},
		{"show foo", `unknown command "foo" of roced show`},
		{"show qp x", "no argument"},
		{"netdev -d nowhere0 x", "no argument"},
		{"monitor x", "no argument"},
		{"dump x", "no argument"},
		{"doctor x", "no argument"},
		{"run x", "no argument"},
		{"config example x", "no argument"},
		{"socket list x", "no argument"},
		{"exec", "which program?"},
		{"exec --socket /no/such.sock --loss 1% true", "--loss is for a service of the command's own, --socket names another"},
		{"exec --network udp --loss 1% true", "--loss is for --network loopback, not udp"},
		{"exec --network udp --hosts 2 true", "--hosts is for --network loopback, not udp"},
		{"perf -d nowhere0 ::1 --sizes 5k", "--sizes 5120: 0 to 4096 bytes"},
		{"perf -d nowhere0 ::1 --sizes 1,5k", "--sizes 5120: 0 to 4096 bytes"},
		{"perf -d nowhere0 ::1 --sizes 64q", `--sizes: "64q" is not a number of bytes, such as 4096, 64k or 1M`},
		{"perf -d nowhere0 --rc --bandwidth --sizes 9M", "--sizes 9437184: 0 to 8388608 bytes"},
		{"ping -d nowhere0 -s 5k", "--size 5120: 0 to 4096 bytes"},
		{"ping -d nowhere0 --rc -s 2M", "--size 2097152: 0 to 1048576 bytes"},
		{"ping -d nowhere0 -c 0", "--count 0"},
		{"mcast -d nowhere0 239.1.2.3 --send --size 5K", "--size 5120: 0 to 4096 bytes"},
		{"dump -w /dev/null -s -1", "--snaplen -1"},
		{"--nonsense", "unknown flag"},
		{"--log-level loud version", "log-level"},
		{"demo x", "no argument"},
		{"demo --count 0", "at least 1"},
		{"demo --count x", "--count"},
		{"version x", "no argument"},
		{"perf", "name an interface with -d"},
		{"perf 10.0.0.1", "name an interface with -d"},
		{"perf -d nowhere0 a b", "one HOST"},
		{"perf -d nowhere0 --json", "for the client"},
		{"perf -d nowhere0 --sizes 1", "for the client"},
		{"perf -d nowhere0 ::1 --once", "for the server"},
		{"perf -d nowhere0 ::1 -p 0", "TCP ports"},
		{"perf -d nowhere0 -p 65536", "TCP ports"},
		{"perf -d nowhere0 -g -2", "gid-index"},
		{"perf -d nowhere0 ::1 --duration 0s", "duration"},
		{"perf -d nowhere0 ::1 --duration 25h", "duration"},
		{"perf -d nowhere0 ::1 --count 0", "count"},
		{"perf -d nowhere0 ::1 --sizes -1", "sizes"},
		{"perf -d nowhere0 ::1 --sizes 4097", "largest RDMA MTU"},
		{"perf -d nowhere0 ::1 --sizes x", "sizes"},
		{"perf -d nowhere0 --group 239.1.2.3", "for --perftest"},
		{"perf -d nowhere0 ::1 --rate 1", "for --perftest"},
		{"perf -d nowhere0 --perftest", "--perftest needs --bandwidth or --latency"},
		{"perf -d nowhere0 --perftest --bandwidth --latency", "not both"},
		{"perf -d nowhere0 --perftest --latency --once", "--once does not go"},
		{"perf -d nowhere0 ::1 --perftest --latency --duration 1s", "--duration does not go"},
		{"perf -d nowhere0 --perftest --latency --sizes 1,2", "measure one size"},
		{"perf -d nowhere0 --perftest --latency --sizes 4097", "largest RDMA MTU"},
		{"perf -d nowhere0 --perftest --latency --timeout 0s", "timeout"},
		{"perf -d nowhere0 ::1 --perftest --bandwidth --rate -1", "rate"},
		{"perf -d nowhere0 --perftest --bandwidth --rate 1", "which sends"},
		{"perf -d nowhere0 ::1 --perftest --latency --rate 1", "which sends"},
		{"perf -d nowhere0 ::1 --perftest --bandwidth --group 239.1.2.3", "receives nothing"},
		{"perf -d nowhere0 --perftest --bandwidth --group 10.0.0.1", "not a multicast address"},
		{"perf -d nowhere0 --op read", "for --rc and --uc"},
		{"perf -d nowhere0 --perftest --bandwidth --qps 2", "for --rc and --uc"},
		{"perf -d nowhere0 --rc", "--rc needs --bandwidth or --latency"},
		{"perf -d nowhere0 --rc --uc --bandwidth", "excludes"},
		{"perf -d nowhere0 --rc --bandwidth --op add", "send, write, read, atomic or swap"},
		{"perf -d nowhere0 --uc --bandwidth --op read", "needs --rc"},
		{"perf -d nowhere0 --uc --latency --op atomic", "needs --rc"},
		{"perf -d nowhere0 --rc --bandwidth --op atomic -s 16", "an atomic has 8 bytes"},
		{"perf -d nowhere0 --rc --bandwidth --sizes 8388609", "sizes"},
		{"perf -d nowhere0 --rc --bandwidth --mtu 1500", "2048 or 4096 bytes"},
		{"perf -d nowhere0 --rc --bandwidth --count 0", "1 to 10000000 messages"},
		{"perf -d nowhere0 --rc --latency --count 0", "1 to 10000000 round trips"},
		{"perf -d nowhere0 --uc --latency --bandwidth", "--uc measures one thing"},
		{"perf -d nowhere0 --rc --bandwidth --qps 0", "qps"},
		{"perf -d nowhere0 --rc --latency --qps 2", "--latency takes one queue pair"},
		{"perf -d nowhere0 --rc --bandwidth --depth 0", "depth"},
		{"perf -d nowhere0 --rc --latency --op write --sleep", "nothing wakes"},
		{"perf -d nowhere0 --rc --latency --op write -s 0", "a WRITE of no bytes"},
		{"perf -d nowhere0 --rc --bandwidth --rate 5", "for datagrams"},
		{"perf -d nowhere0 --rc --bandwidth --duration 1s", "--duration does not go"},
		{"ping", "name an interface with -d"},
		{"ping -d nowhere0 a b", "one HOST"},
		{"ping -d nowhere0 ::1 -p 0", "TCP ports"},
		{"ping -d nowhere0 -g -2", "gid-index"},
		{"ping -d nowhere0 -s -1", "largest RDMA MTU"},
		{"ping -d nowhere0 -s 4097", "largest RDMA MTU"},
		{"ping -d nowhere0 -n 0", "count"},
		{"ping -d nowhere0 -r 0", "rx-depth"},
		{"ping -d nowhere0 -r 16385", "rx-depth"},
		{"ping -d nowhere0 -W 0s", "timeout"},
		{"ping -d nowhere0 --tclass 256", "tclass"},
		{"mcast -d nowhere0", "one GROUP"},
		{"mcast -d nowhere0 239.1.2.3 239.1.2.4", "one GROUP"},
		{"netdev -d nowhere0 --group 10.0.0.1", "--group 10.0.0.1 is not a multicast address"},
		{"dump --group all-hosts", "--group \"all-hosts\" is not an IP address"},
		{"run --loopback --metrics 9464", "write unix:PATH or HOST:PORT"},
		{"mcast 239.1.2.3", "name an interface with -d"},
		{"mcast -d nowhere0 all-hosts", "not an IP address"},
		{"mcast -d nowhere0 10.0.0.1", "not a multicast address"},
		{"mcast -d nowhere0 fd77::1", "not a multicast address"},
		{"mcast -d nowhere0 ff02::1%eth1", "is on interface eth1, and -d names nowhere0"},
		{"mcast -d nowhere0 ff00::1", "ff02::/16 is the link's"},
		{"mcast -d nowhere0 ff01::1 --send", "ff02::/16 is the link's"},
		{"mcast -d nowhere0 239.1.2.3 --xdp offload", "auto native generic"},
		{"perf -d nowhere0 --copy --zerocopy", "one of them"},
		{"ping -d nowhere0 --xdp generic --zerocopy", "leave out --xdp generic"},
		{"demo --copy --zerocopy", "one of them"},
		{"ping -d nowhere0 --network tcp", "one of auto xdp udp"},
		{"ping -d nowhere0 --network udp --xdp native", "--network udp and --xdp native exclude each other"},
		{"perf -d nowhere0 --network udp --tx trains", "--network udp and --tx trains exclude each other"},
		{"mcast -d nowhere0 239.1.2.3 --network udp --copy", "--network udp and --copy exclude each other"},
		{"mcast -d nowhere0 239.1.2.3 --network udp --membership netlink", "--network udp and --membership netlink exclude each other"},
		{"demo --network udp --zerocopy", "--network udp and --zerocopy exclude each other"},
		{"doctor --network tcp", "one of auto xdp udp"},
		{"run -d nowhere0 --network tcp", "one of auto xdp udp"},
		{"run --network xdp", "--network is for the interfaces that --device names"},
		{"show gids", "unknown command \"gids\" of roced show; did you mean gid?"},
		{"show gid", "name an interface with -d"},
		{"show gid -d nowhere0 x", "no argument"},
		{"mcast -d nowhere0 239.1.2.3 --send-only", "add --send"},
		{"mcast -d nowhere0 239.1.2.3 --size 1", "add --send"},
		{"mcast -d nowhere0 239.1.2.3 --rate 1", "add --send"},
		{"mcast -d nowhere0 239.1.2.3 --loopback", "add --send"},
		{"mcast -d nowhere0 239.1.2.3 --send --send-only --loopback", "receives nothing"},
		{"mcast -d nowhere0 239.1.2.3 --count -1", "--count -1"},
		{"mcast -d nowhere0 239.1.2.3 --send --size 4097", "largest RDMA MTU"},
		{"mcast -d nowhere0 239.1.2.3 --send --size -1", "largest RDMA MTU"},
		{"mcast -d nowhere0 239.1.2.3 --send --rate -1", "--rate -1"},
		{"mcast -d nowhere0 239.1.2.3 --send -g -2", "gid-index"},
		{"mcast -d nowhere0 239.1.2.3 --send --imm qp", "qpn, none, or a number of 32 bits"},
		{"mcast -d nowhere0 239.1.2.3 --send --imm 0x100000000", "32 bits"},
		{"mcast -d nowhere0 239.1.2.3 --qkey -1", "32 bits"},
		{"mcast -d nowhere0 239.1.2.3 --membership magic", "auto, netlink or socket"},
	} {
		cmdtest.CheckFailure(t, strings.Fields(row.args), cli.ExitUsage, row.want)
	}
}

func TestVersionAndHelp(t *testing.T) {
	for args, want := range map[string]string{"version": "roced ", "": "Available Commands", "help perf": "--netns", "demo --help": "--count", "help mcast": "0x11111111", "help ping": "ibv_ud_pingpong", "perf --help": "perftest\n6.06"} {
		code, stdout, stderr := cmdtest.Run(t, strings.Fields(args)...)
		if code != 0 || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("%q: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
}

// TestErrorsAreOneLine: errors.Join puts each on its own.
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
