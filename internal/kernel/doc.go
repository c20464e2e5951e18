// Package kernel reports which kernel runs, and explains errors of one that is too old or lacks a module: an error is a fact and a
// remedy.
package kernel
