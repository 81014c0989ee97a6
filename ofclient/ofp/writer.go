package ofp

import (
	"encoding/binary"
	"fmt"
)

func put16(b []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(b, v) }
func put32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }
func put64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

func putZeros(b []byte, n int) []byte {
	var zeros [8]byte
	for n > len(zeros) {
		b = append(b, zeros[:]...)
		n -= len(zeros)
	}
	return append(b, zeros[:n]...)
}

// putPad8 pads with zeros until the bytes from start on are a multiple of 8.
func putPad8(b []byte, start int) []byte {
	n := len(b) - start
	return putZeros(b, pad8(n)-n)
}

// setLen16 writes the number of bytes from start on into the 16 bits at start+off.
func setLen16(b []byte, start, off int, what string) error {
	n := len(b) - start
	if n > MaxLen {
		return fmt.Errorf("%s: %d bytes, its length field has 16 bits", what, n)
	}
	binary.BigEndian.PutUint16(b[start+off:], uint16(n))
	return nil
}
