package verbs

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// The rules, written down again from IBA 11.2.5.2 and the kernel's documentation of
// ib_modify_qp_is_ok: what a UD queue pair must give, and what it may give besides the
// state. A pair that is not here is a change that does not exist.
var goldenUD = map[string]struct{ must, may string }{
	"RESET RESET": {}, "INIT RESET": {}, "RTR RESET": {}, "RTS RESET": {}, "SQD RESET": {}, "SQE RESET": {}, "ERR RESET": {},
	"INIT ERR": {}, "RTR ERR": {}, "RTS ERR": {}, "SQD ERR": {}, "SQE ERR": {}, "ERR ERR": {},
	"RESET INIT": {must: "pkey port qkey"},
	"INIT INIT":  {may: "pkey port qkey"},
	"INIT RTR":   {may: "pkey qkey"},
	"RTR RTS":    {must: "psn", may: "cur qkey"},
	"RTS RTS":    {may: "cur qkey"},
	"RTS SQD":    {may: "event"},
	"SQD RTS":    {may: "cur qkey"},
	"SQD SQD":    {may: "pkey qkey"},
	"SQE RTS":    {may: "cur qkey"},
}

// goldenBits are libibverbs' numbers (enum ibv_qp_attr_mask).
var goldenBits = map[string]QPAttrMask{
	"cur": 2, "event": 4, "pkey": 16, "port": 32, "qkey": 64, "psn": 65536,
}

func goldenMask(names string) (mask QPAttrMask) {
	for name := range fields(names) {
		mask |= goldenBits[name]
	}
	return mask
}

// Every pair of states, and every set of the bits that any transition knows.
func TestModifyQPIsOK(t *testing.T) {
	var bits []QPAttrMask
	for _, bit := range goldenBits {
		bits = append(bits, bit)
	}
	good := 0
	for from := QPStateReset; from <= QPStateErr; from++ {
		for to := QPStateReset; to <= QPStateErr; to++ {
			rule, exists := goldenUD[from.String()+" "+to.String()]
			must := goldenMask(rule.must)
			may := must | goldenMask(rule.may)
			for set := range 1 << len(bits) {
				mask := QPAttrState
				for i, bit := range bits {
					if set>>i&1 != 0 {
						mask |= bit
					}
				}
				want := exists && mask&must == must && mask&^(may|QPAttrState) == 0
				if got := ModifyQPIsOK(from, to, QPTypeUD, mask); got != want {
					t.Errorf("%v to %v with %v: %v, want %v", from, to, mask, got, want)
				}
				if want {
					good++
				}
			}
		}
	}
	if good == 0 {
		t.Error("nothing was allowed")
	}
}

// Each of the 32 bits by itself: beside what a transition must have, only those that
// it may have do no harm.
func TestModifyQPEveryBit(t *testing.T) {
	for from := QPStateReset; from <= QPStateErr; from++ {
		for to := QPStateReset; to <= QPStateErr; to++ {
			rule, exists := goldenUD[from.String()+" "+to.String()]
			must := goldenMask(rule.must)
			for i := range 32 {
				bit := QPAttrMask(1) << i
				want := exists && (must|goldenMask(rule.may)|QPAttrState)&bit != 0
				if got := ModifyQPIsOK(from, to, QPTypeUD, must|bit); got != want {
					t.Errorf("%v to %v with 0x%x besides what is required: %v, want %v", from, to, uint32(bit), got, want)
				}
				if want && must&bit != 0 && ModifyQPIsOK(from, to, QPTypeUD, must&^bit) {
					t.Errorf("%v to %v without %v is taken", from, to, bit)
				}
			}
		}
	}
}

func TestCheckModifyQPErrors(t *testing.T) {
	rows := []struct {
		name     string
		from, to QPState
		kind     QPType
		mask     QPAttrMask
		errno    unix.Errno
		sentinel error
		says     string
	}{
		{"another service", QPStateReset, QPStateInit, 2, QPAttrState, unix.EOPNOTSUPP, ErrUnsupported, "type 2"},
		{"no such state", QPStateReset, 7, QPTypeUD, QPAttrState, unix.EINVAL, ErrInvalid, "STATE(7)"},
		{"from no such state", 200, QPStateInit, QPTypeUD, QPAttrState, unix.EINVAL, ErrInvalid, "STATE(200)"},
		{"skips INIT", QPStateReset, QPStateRTR, QPTypeUD, QPAttrState, unix.EINVAL, ErrState, "cannot go from RESET to RTR"},
		{"to SQE by itself", QPStateRTS, QPStateSQE, QPTypeUD, QPAttrState, unix.EINVAL, ErrState, "RTS to SQE"},
		{"no port", QPStateReset, QPStateInit, QPTypeUD, QPAttrState | QPAttrPKeyIndex | QPAttrQKey, unix.EINVAL, ErrInvalid, "needs port"},
		{"PSN too early", QPStateInit, QPStateRTR, QPTypeUD, QPAttrState | QPAttrSQPSN, unix.EINVAL, ErrInvalid, "cannot set SQ PSN"},
		{"current state in INIT", QPStateInit, QPStateRTR, QPTypeUD, QPAttrState | QPAttrCurState, unix.EINVAL, ErrInvalid, "not in INIT"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := CheckModifyQP(row.from, row.to, row.kind, row.mask)
			if !errors.Is(err, row.errno) || !errors.Is(err, row.sentinel) || !contains(err, row.says) {
				t.Errorf("%v, want %v that says %q", err, row.errno, row.says)
			}
		})
	}
}

func TestNames(t *testing.T) {
	rows := map[string]string{
		QPStateRTS.String():                      "RTS",
		QPState(9).String():                      "STATE(9)",
		QPAttrMask(0).String():                   "nothing",
		(QPAttrState | QPAttrQKey).String():      "state, Q_Key",
		(QPAttrPort | QPAttrMask(1<<7)).String(): "port, 0x80",
		PortActive.String():                      "PORT_ACTIVE",
		PortDown.String():                        "PORT_DOWN",
		PortState(3).String():                    "PORT_STATE(3)",
		WCSuccess.String():                       "success",
		WCStatus(77).String():                    "status(77)",
	}
	for got, want := range rows {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
