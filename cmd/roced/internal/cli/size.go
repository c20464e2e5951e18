// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Size is a number of bytes in a flag: 4096, 64k, 1M or 1G, where k is 1024. KiB etc. are equivalent.
type Size int

// sizeUnits are the suffixes of a Size, in powers of 1024.
const sizeUnits = "kmg"

// AddSize adds a flag for a number of bytes.
func AddSize(f *pflag.FlagSet, p *int, name, shorthand string, value int, usage string) {
	*p = value
	f.VarP((*Size)(p), name, shorthand, usage)
}

// Set implements pflag.Value.
func (s *Size) Set(text string) (err error) {
	*s, err = ParseSize(text)
	return err
}

// String implements pflag.Value.
func (s *Size) String() string { return strconv.Itoa(int(*s)) }

// Type implements pflag.Value.
func (s *Size) Type() string { return "bytes" }

// ParseSize parses a Size.
func ParseSize(text string) (Size, error) {
	digits := strings.ToLower(text)
	digits = strings.TrimSuffix(strings.TrimSuffix(digits, "b"), "i")
	unit := 1
	if digits != "" {
		if power := strings.IndexByte(sizeUnits, digits[len(digits)-1]); power >= 0 {
			unit, digits = 1<<(10*(power+1)), digits[:len(digits)-1]
		}
	}
	number, err := strconv.Atoi(digits)
	switch {
	case err != nil || unit == 1 && digits != text:
		return 0, fmt.Errorf("%q is not a number of bytes, such as 4096, 64k or 1M", text)
	case number > math.MaxInt32/unit || number < math.MinInt32/unit:
		return 0, fmt.Errorf("%s is out of range", text)
	}
	return Size(number * unit), nil
}

// sizes holds several Sizes, separated by commas or given by repeated flags.
type sizes struct {
	list  *[]int
	given bool // list no longer has the default
}

// AddSizes adds a flag for a list of numbers of bytes.
func AddSizes(f *pflag.FlagSet, p *[]int, name, shorthand string, value []int, usage string) {
	*p = value
	f.VarP(&sizes{list: p}, name, shorthand, usage)
}

// Set implements pflag.Value.
func (s *sizes) Set(text string) error {
	if !s.given {
		s.given, *s.list = true, nil
	}
	for _, one := range strings.Split(text, ",") {
		size, err := ParseSize(one)
		if err != nil {
			return err
		}
		*s.list = append(*s.list, int(size))
	}
	return nil
}

// String implements pflag.Value.
func (s *sizes) String() string {
	if s.list == nil {
		return ""
	}
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(*s.list), "[]"), " ", ",")
}

// Type implements pflag.Value.
func (s *sizes) Type() string { return "bytes" }
