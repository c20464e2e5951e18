// Package errtest checks errors in tests: that err is nil, or which error it is and what its text contains.
package errtest
