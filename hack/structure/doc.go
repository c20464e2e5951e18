// Package structure has no code: its test holds the project to its architecture,
// which package may import which, commands too, and where unsafe may be.
package structure
