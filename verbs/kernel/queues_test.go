// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// The rules, written down again, by type: the required attributes of a change, and after the bar the optional ones
// besides the state (IBA 11.2.5.2; the kernel's qp_state_table). "-" stands for neither. Changes to
// RESET and to ERR are in goldenAlways; other changes do not exist, for any type.
var goldenRules = map[string]map[string]string{
	"RESET INIT": {
		"UD": "pkey port qkey |", "RAW_PACKET": "port |", "SMI": "pkey qkey |", "GSI": "pkey qkey |",
		"UC": "pkey port access |", "RC": "pkey port access |", "XRC_SEND": "pkey port access |", "XRC_RECV": "pkey port access |",
	},
	"INIT INIT": {
		"UD": "| pkey port qkey", "RAW_PACKET": "|", "SMI": "| pkey qkey", "GSI": "| pkey qkey",
		"UC": "| pkey port access", "RC": "| pkey port access", "XRC_SEND": "| pkey port access", "XRC_RECV": "| pkey port access",
	},
	"INIT RTR": {
		"UD": "| pkey qkey", "RAW_PACKET": "|", "SMI": "| pkey qkey", "GSI": "| pkey qkey",
		"UC":       "av mtu dest rqpsn | alt access pkey",
		"RC":       "av mtu dest rqpsn destrd rnrtimer | alt access pkey",
		"XRC_SEND": "av mtu dest rqpsn | alt access pkey",
		"XRC_RECV": "av mtu dest rqpsn destrd rnrtimer | alt access pkey",
	},
	"RTR RTS": {
		"UD": "sqpsn | cur qkey", "RAW_PACKET": "| rate", "SMI": "sqpsn | cur qkey", "GSI": "sqpsn | cur qkey",
		"UC":       "sqpsn | cur alt access mig",
		"RC":       "timeout retry rnr sqpsn rd | cur alt access rnrtimer mig",
		"XRC_SEND": "timeout retry rnr sqpsn rd | cur alt access mig",
		"XRC_RECV": "timeout sqpsn | cur alt access rnrtimer mig",
	},
	"RTS RTS": {
		"UD": "| cur qkey", "RAW_PACKET": "| rate", "SMI": "| cur qkey", "GSI": "| cur qkey",
		"UC": "| cur access alt mig", "RC": "| cur access alt mig rnrtimer",
		"XRC_SEND": "| cur access alt mig", "XRC_RECV": "| cur access alt mig rnrtimer",
	},
	"RTS SQD": {
		"UD": "| event", "RAW_PACKET": "|", "SMI": "| event", "GSI": "| event",
		"UC": "| event", "RC": "| event", "XRC_SEND": "| event", "XRC_RECV": "| event",
	},
	"SQD RTS": {
		"UD": "| cur qkey", "RAW_PACKET": "|", "SMI": "| cur qkey", "GSI": "| cur qkey",
		"UC": "| cur alt access mig", "RC": "| cur alt access rnrtimer mig",
		"XRC_SEND": "| cur alt access mig", "XRC_RECV": "| cur alt access rnrtimer mig",
	},
	"SQD SQD": {
		"UD": "| pkey qkey", "RAW_PACKET": "|", "SMI": "| pkey qkey", "GSI": "| pkey qkey",
		"UC":       "| av alt access pkey mig",
		"RC":       "| port av timeout retry rnr rd destrd alt access pkey rnrtimer mig",
		"XRC_SEND": "| port av timeout retry rnr rd alt access pkey mig",
		"XRC_RECV": "| port av timeout destrd alt access pkey rnrtimer mig",
	},
	"SQE RTS": {
		"UD": "| cur qkey", "RAW_PACKET": "|", "SMI": "| cur qkey", "GSI": "| cur qkey",
		"UC": "| cur access", "RC": "|", "XRC_SEND": "|", "XRC_RECV": "|",
	},
}

// goldenAlways are the changes that every type may make, with the state alone.
const goldenAlways = "RESET-RESET INIT-RESET RTR-RESET RTS-RESET SQD-RESET SQE-RESET ERR-RESET " +
	"INIT-ERR RTR-ERR RTS-ERR SQD-ERR SQE-ERR ERR-ERR"

// goldenTypes and goldenBits are the kernel's numbers (enum ib_qp_type, enum ib_qp_attr_mask).
var (
	goldenTypes = map[string]verbs.QPType{"SMI": 0, "GSI": 1, "RC": 2, "UC": 3, "UD": 4, "RAW_PACKET": 8, "XRC_SEND": 9, "XRC_RECV": 10}
	goldenBits  = map[string]verbs.QPAttrMask{
		"cur": 1 << 1, "event": 1 << 2, "access": 1 << 3, "pkey": 1 << 4, "port": 1 << 5, "qkey": 1 << 6, "av": 1 << 7,
		"mtu": 1 << 8, "timeout": 1 << 9, "retry": 1 << 10, "rnr": 1 << 11, "rqpsn": 1 << 12, "rd": 1 << 13, "alt": 1 << 14,
		"rnrtimer": 1 << 15, "sqpsn": 1 << 16, "destrd": 1 << 17, "mig": 1 << 18, "dest": 1 << 20, "rate": 1 << 25,
	}
)

// golden contains the required and the optional attributes of a change, if there is such a change.
func golden(t *testing.T, from, to verbs.QPState, kind string) (must, may verbs.QPAttrMask, exists bool) {
	t.Helper()
	if slices.Contains(strings.Fields(goldenAlways), from.String()+"-"+to.String()) {
		return 0, 0, true
	}
	rules, exists := goldenRules[from.String()+" "+to.String()]
	if !exists {
		return 0, 0, false
	}
	required, optional, split := strings.Cut(rules[kind], "|")
	if !split {
		t.Fatalf("no rule for %v to %v of %s", from, to, kind)
	}
	return goldenMask(t, required), goldenMask(t, optional), true
}

func goldenMask(t *testing.T, names string) (mask verbs.QPAttrMask) {
	t.Helper()
	for _, name := range strings.Fields(names) {
		bit, ok := goldenBits[name]
		if !ok {
			t.Fatalf("no attribute %q", name)
		}
		mask |= bit
	}
	return mask
}

// changes calls visit for every pair of states, of every type, on each link layer.
func changes(t *testing.T, visit func(from, to verbs.QPState, kind verbs.QPType, layer ib.LinkLayer, must, may verbs.QPAttrMask, exists bool)) {
	t.Helper()
	for name, kind := range goldenTypes {
		for from := verbs.QPStateReset; from <= verbs.QPStateErr; from++ {
			for to := verbs.QPStateReset; to <= verbs.QPStateErr; to++ {
				must, may, exists := golden(t, from, to, name)
				for layer := ib.LinkLayerUnspecified; layer <= ib.LinkLayerEthernet; layer++ {
					visit(from, to, kind, layer, must, may, exists)
				}
			}
		}
	}
}

// The required attributes are accepted, alone and with all optional ones; nothing else is: not without any
// of the first, and not with any other of the 32 bits.
func TestModifyQPIsOK(t *testing.T) {
	good := 0
	changes(t, func(from, to verbs.QPState, kind verbs.QPType, layer ib.LinkLayer, must, may verbs.QPAttrMask, exists bool) {
		ask := func(mask verbs.QPAttrMask, want bool) {
			t.Helper()
			if got := ModifyQPIsOK(from, to, kind, mask, layer); got != want {
				t.Errorf("%v on %v, %v to %v with %v: %v, want %v", kind, layer, from, to, mask, got, want)
			}
			if want {
				good++
			}
		}
		ask(must, exists)
		ask(must|verbs.QPAttrState, exists)
		ask(must|may|verbs.QPAttrState, exists)
		for i := range 32 {
			bit := verbs.QPAttrMask(1) << i
			ask(must|bit, exists && (must|may|verbs.QPAttrState)&bit != 0)
			if must&bit != 0 {
				ask((must|may|verbs.QPAttrState)&^bit, false)
			}
		}
	})
	if good < 1000 {
		t.Errorf("only %d were allowed", good)
	}
}

// Every set of the attributes that datagrams know, for the types that have datagrams.
func TestModifyQPEverySet(t *testing.T) {
	bits := []verbs.QPAttrMask{1 << 1, 1 << 2, 1 << 4, 1 << 5, 1 << 6, 1 << 16}
	changes(t, func(from, to verbs.QPState, kind verbs.QPType, layer ib.LinkLayer, must, may verbs.QPAttrMask, exists bool) {
		if kind != verbs.QPTypeUD && kind != verbs.QPTypeGSI && kind != verbs.QPTypeSMI {
			return
		}
		for set := range 1 << len(bits) {
			mask := verbs.QPAttrState
			for i, bit := range bits {
				if set>>i&1 != 0 {
					mask |= bit
				}
			}
			want := exists && mask&must == must && mask&^(must|may|verbs.QPAttrState) == 0
			if got := ModifyQPIsOK(from, to, kind, mask, layer); got != want {
				t.Errorf("%v, %v to %v with %v: %v, want %v", kind, from, to, mask, got, want)
			}
		}
	})
}

// Types 5 and 6 have no rows in the kernel's table: they change with the state alone.
func TestModifyQPRaw(t *testing.T) {
	for _, kind := range []verbs.QPType{verbs.QPTypeRawIPv6, verbs.QPTypeRawEthertype} {
		for mask, want := range map[verbs.QPAttrMask]bool{0: true, verbs.QPAttrState: true, verbs.QPAttrState | verbs.QPAttrPort: false, verbs.QPAttrQKey: false} {
			if got := ModifyQPIsOK(verbs.QPStateReset, verbs.QPStateInit, kind, mask, ib.LinkLayerEthernet); got != want {
				t.Errorf("%v with %v: %v", kind, mask, got)
			}
		}
		if ModifyQPIsOK(verbs.QPStateReset, verbs.QPStateRTS, kind, verbs.QPAttrState, ib.LinkLayerEthernet) {
			t.Errorf("%v skips states", kind)
		}
	}
}

// All other numbers are no types and no states. The link layer makes no difference.
func TestModifyQPUnknownNumbers(t *testing.T) {
	for n := range 256 {
		kind, layer, state := verbs.QPType(n), ib.LinkLayer(n), verbs.QPState(n)
		isType := slices.Contains(slices.Collect(maps.Values(goldenTypes)), kind) || kind == verbs.QPTypeRawIPv6 || kind == verbs.QPTypeRawEthertype
		if got := ModifyQPIsOK(verbs.QPStateRTS, verbs.QPStateErr, kind, verbs.QPAttrState, ib.LinkLayerEthernet); got != isType {
			t.Errorf("type %d: %v", n, got)
		}
		if got := ModifyQPIsOK(verbs.QPStateRTS, verbs.QPStateErr, verbs.QPTypeUD, verbs.QPAttrState, layer); !got {
			t.Errorf("link layer %d: %v", n, got)
		}
		if n > 6 && (ModifyQPIsOK(state, verbs.QPStateReset, verbs.QPTypeUD, verbs.QPAttrState, ib.LinkLayerEthernet) ||
			ModifyQPIsOK(verbs.QPStateRTS, state, verbs.QPTypeUD, verbs.QPAttrState, ib.LinkLayerEthernet)) {
			t.Errorf("state %d is taken", n)
		}
	}
}

func TestCheckModifyQPErrors(t *testing.T) {
	rows := []struct {
		name     string
		from, to verbs.QPState
		kind     verbs.QPType
		mask     verbs.QPAttrMask
		errno    unix.Errno
		sentinel error
		says     string
	}{
		{"no such type", verbs.QPStateReset, verbs.QPStateInit, 7, verbs.QPAttrState, unix.EINVAL, verbs.ErrInvalid, "TYPE(7)"},
		{"no peer", verbs.QPStateInit, verbs.QPStateRTR, verbs.QPTypeRC, verbs.QPAttrState, unix.EINVAL, verbs.ErrInvalid, "needs address vector, path MTU"},
		{"alternate path", verbs.QPStateRTS, verbs.QPStateRTS, verbs.QPTypeUD, verbs.QPAttrAltPath, unix.EINVAL, verbs.ErrInvalid, "cannot set alternate path"},
		{"no such state", verbs.QPStateReset, 7, verbs.QPTypeUD, verbs.QPAttrState, unix.EINVAL, verbs.ErrInvalid, "STATE(7)"},
		{"from no such state", 200, verbs.QPStateInit, verbs.QPTypeUD, verbs.QPAttrState, unix.EINVAL, verbs.ErrInvalid, "STATE(200)"},
		{"skips INIT", verbs.QPStateReset, verbs.QPStateRTR, verbs.QPTypeUD, verbs.QPAttrState, unix.EINVAL, verbs.ErrState, "cannot go from RESET to RTR"},
		{"to SQE alone", verbs.QPStateRTS, verbs.QPStateSQE, verbs.QPTypeUD, verbs.QPAttrState, unix.EINVAL, verbs.ErrState, "RTS to SQE"},
		{"no port", verbs.QPStateReset, verbs.QPStateInit, verbs.QPTypeUD, verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrQKey, unix.EINVAL, verbs.ErrInvalid, "needs port"},
		{"PSN too early", verbs.QPStateInit, verbs.QPStateRTR, verbs.QPTypeUD, verbs.QPAttrState | verbs.QPAttrSQPSN, unix.EINVAL, verbs.ErrInvalid, "cannot set SQ PSN"},
		{"current state in INIT", verbs.QPStateInit, verbs.QPStateRTR, verbs.QPTypeUD, verbs.QPAttrState | verbs.QPAttrCurState, unix.EINVAL, verbs.ErrInvalid, "not in INIT"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := CheckModifyQP(row.from, row.to, row.kind, row.mask, ib.LinkLayerEthernet)
			if !errors.Is(err, row.errno) || !errors.Is(err, row.sentinel) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("got %v, want %v with the text %q", err, row.errno, row.says)
			}
		})
	}
}

func TestNames(t *testing.T) {
	rows := map[string]string{
		verbs.QPStateRTS.String():                             "RTS",
		verbs.QPState(9).String():                             "STATE(9)",
		verbs.QPAttrMask(0).String():                          "nothing",
		(verbs.QPAttrState | verbs.QPAttrQKey).String():       "state, Q_Key",
		(verbs.QPAttrPort | verbs.QPAttrMask(1<<7)).String():  "port, address vector",
		(verbs.QPAttrPort | verbs.QPAttrMask(1<<22)).String(): "port, 0x400000",
		ib.LinkLayerEthernet.String():                         "Ethernet",
		verbs.QPTypeGSI.String():                              "GSI",
		verbs.PortActive.String():                             "active",
		verbs.PortDown.String():                               "down",
		verbs.PortState(9).String():                           "port state(9)",
		verbs.WCSuccess.String():                              "success",
		verbs.WCStatus(77).String():                           "status(77)",
	}
	for got, want := range rows {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
