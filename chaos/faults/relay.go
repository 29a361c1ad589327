// Gives packets on late: takes them from a tun device, keeps each for -ms milliseconds, and puts it
// on the link -out, as it is, for the neighbour -mac. Beside netfilter, which has seen them already.
//
// What it did is written to -counts as JSON: packets taken, given and lost, and the least and the
// most milliseconds that a packet was kept. Told to end, it first gives on what it still has.
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

type packet struct {
	taken time.Time
	data  []byte
}

type counts struct {
	Taken   int     `json:"taken"`
	Given   int     `json:"given"`
	Lost    int     `json:"lost"`
	LeastMS float64 `json:"least_ms"`
	MostMS  float64 `json:"most_ms"`
}

type relay struct {
	mu    sync.Mutex
	did   counts
	queue chan packet
	hurry chan struct{} // closed when it is told to end
	delay time.Duration
}

// as many packets wait at most; more are lost, as in any queue
const room = 1 << 15

func control(descriptor int, what uintptr, value unsafe.Pointer) {
	_, _, failed := syscall.Syscall(
		syscall.SYS_IOCTL, uintptr(descriptor), what, uintptr(value),
	)
	if failed != 0 {
		log.Fatalf("ioctl %#x: %v", what, failed)
	}
}

// a tun device that is up; it ends with this process.
func tun(name string, mtu int) int {
	device, err := syscall.Open("/dev/net/tun", syscall.O_RDWR, 0)
	check(err)
	var about struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(about.name[:15], name)
	about.flags = syscall.IFF_TUN | syscall.IFF_NO_PI
	control(device, syscall.TUNSETIFF, unsafe.Pointer(&about))
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	check(err)
	defer syscall.Close(socket)
	var size struct {
		name [16]byte
		mtu  int32
		_    [20]byte
	}
	size.name, size.mtu = about.name, int32(mtu)
	control(socket, syscall.SIOCSIFMTU, unsafe.Pointer(&size))
	about.flags = syscall.IFF_UP | syscall.IFF_RUNNING
	control(socket, syscall.SIOCSIFFLAGS, unsafe.Pointer(&about))
	return device
}

func (it *relay) take(device int) {
	buffer := make([]byte, 1<<16)
	for {
		size, err := syscall.Read(device, buffer)
		if err == syscall.EINTR {
			continue
		}
		check(err)
		one := packet{time.Now(), append([]byte(nil), buffer[:size]...)}
		it.mu.Lock()
		it.did.Taken++
		select {
		case it.queue <- one:
		default:
			it.did.Lost++
		}
		it.mu.Unlock()
	}
}

func (it *relay) give(socket int, to syscall.Sockaddr) {
	for one := range it.queue {
		select {
		case <-time.After(time.Until(one.taken.Add(it.delay))):
		case <-it.hurry:
		}
		err := syscall.Sendto(socket, one.data, 0, to)
		kept := float64(time.Since(one.taken).Microseconds()) / 1000
		it.mu.Lock()
		if err != nil {
			it.did.Lost++
		} else {
			it.did.Given++
			it.did.MostMS = max(it.did.MostMS, kept)
			if it.did.Given == 1 || kept < it.did.LeastMS {
				it.did.LeastMS = kept
			}
		}
		it.mu.Unlock()
	}
}

func (it *relay) tell(file string) {
	it.mu.Lock()
	text, err := json.Marshal(it.did)
	it.mu.Unlock()
	check(err)
	check(os.WriteFile(file+".partial", text, 0o644))
	check(os.Rename(file+".partial", file))
}

func main() {
	name := flag.String("tun", "", "name of the device that is made")
	out := flag.String("out", "", "the link that packets are put on")
	mac := flag.String("mac", "", "who is at the other end of it")
	ms := flag.Int("ms", 0, "milliseconds that each packet is kept")
	file := flag.String("counts", "", "file for what was done")
	flag.Parse()

	link, err := net.InterfaceByName(*out)
	check(err)
	neighbour, err := net.ParseMAC(*mac)
	check(err)
	// protocol 0: it only sends
	socket, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, 0)
	check(err)
	to := &syscall.SockaddrLinklayer{
		Protocol: binary.NativeEndian.Uint16([]byte{syscall.ETH_P_IP >> 8, syscall.ETH_P_IP & 0xff}),
		Ifindex:  link.Index,
		Halen:    uint8(len(neighbour)),
	}
	copy(to.Addr[:], neighbour)
	it := &relay{
		queue: make(chan packet, room),
		hurry: make(chan struct{}),
		delay: time.Duration(*ms) * time.Millisecond,
	}
	device := tun(*name, link.MTU)
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	go it.take(device)
	go it.give(socket, to)
	it.tell(*file)
	for {
		select {
		case <-time.After(100 * time.Millisecond):
			it.tell(*file)
		case <-told:
			close(it.hurry)
			for len(it.queue) > 0 {
				time.Sleep(time.Millisecond)
			}
			return
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
