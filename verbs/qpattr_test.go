// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

// filled returns attributes without zero values.
func filled() (attr QPAttr) {
	v := reflect.ValueOf(&attr).Elem()
	for i := range v.NumField() {
		switch field := v.Field(i); field.Kind() {
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Struct: // Cap, AHAttr
			field.Field(field.NumField() - 1).SetUint(uint64(i + 1))
		default:
			field.SetUint(uint64(i + 1))
		}
	}
	return attr
}

// TestQPAttrSet checks that each bit of a mask selects one attribute; only the capabilities have several.
func TestQPAttrSet(t *testing.T) {
	from := filled()
	var whole QPAttr
	for bit := range 32 {
		var one QPAttr
		one.Set(&from, 1<<bit)
		whole.Set(&from, 1<<bit)
		changed := 0
		for i := range reflect.TypeFor[QPAttr]().NumField() {
			if !reflect.ValueOf(one).Field(i).IsZero() {
				changed++
			}
		}
		if changed > 1 {
			t.Errorf("bit %d: got %d attributes set, want 1: %+v", bit, changed, one)
		}
	}
	from.Cap = QPCap{}
	if whole != from {
		t.Errorf("all bits: got %+v, want %+v", whole, from)
	}
}

// TestWCErr checks that each status of a completion has an errno and a text with the remedy.
func TestWCErr(t *testing.T) {
	for status, errno := range map[WCStatus]unix.Errno{
		WCLocLenErr: unix.EMSGSIZE, WCLocQPOpErr: unix.EINVAL, WCLocProtErr: unix.EFAULT, WCWRFlushErr: unix.ECANCELED, WCMWBindErr: unix.EINVAL,
		WCBadRespErr: unix.EPROTO, WCLocAccessErr: unix.EACCES, WCRemInvReqErr: unix.EREMOTEIO, WCRemAccessErr: unix.EACCES, WCRemOpErr: unix.EREMOTEIO,
		WCRetryExcErr: unix.ETIMEDOUT, WCRNRRetryExcErr: unix.ENOBUFS, WCRemAbortErr: unix.ECONNABORTED, WCGeneralErr: unix.EIO,
	} {
		if err := (&WC{Status: status}).Err(); !errors.Is(err, errno) || len(err.Error()) < len("general error: ") {
			t.Errorf("%v: got %v, want %v", status, err, errno)
		}
	}
	if err := (&WC{}).Err(); err != nil {
		t.Error(err)
	}
}
