// Makes keys and certificates as a JSON list on stdin describes them, in the folder that is the
// only argument. Python's library has nothing for it, and not every host has openssl.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// what to make: NAME.key, NAME.crt (unless KeyOnly), signed by Issuer, an earlier one of the list
// or one that is in the folder already; by itself without one
type request struct {
	Name, Issuer, CN string
	O, DNS, IP       []string
	CA, RSA, KeyOnly bool
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: certs FOLDER <requests.json"))
	}
	var wanted []request
	fail(json.NewDecoder(os.Stdin).Decode(&wanted))
	for _, each := range wanted {
		fail(issue(os.Args[1], each))
	}
}

func issue(folder string, r request) error {
	key, block, err := newKey(r.RSA)
	if err != nil {
		return err
	}
	if err := write(folder, r.Name+".key", block); err != nil || r.KeyOnly {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: r.CN, Organization: r.O},
		DNSNames:              r.DNS,
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(10, 0, 0),
		BasicConstraintsValid: true,
		IsCA:                  r.CA,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	if r.CA {
		cert.KeyUsage |= x509.KeyUsageCertSign
	} else {
		cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	for _, text := range r.IP {
		cert.IPAddresses = append(cert.IPAddresses, net.ParseIP(text))
	}
	parent, signer := cert, key
	if r.Issuer != "" {
		if parent, signer, err = load(folder, r.Issuer); err != nil {
			return err
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	return write(folder, r.Name+".crt", &pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newKey(useRSA bool) (crypto.Signer, *pem.Block, error) {
	if useRSA {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, nil, err
		}
		return key, &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, &pem.Block{Type: "EC PRIVATE KEY", Bytes: der}, err
}

func load(folder, name string) (*x509.Certificate, crypto.Signer, error) {
	var blocks []*pem.Block
	for _, suffix := range []string{".crt", ".key"} {
		data, err := os.ReadFile(filepath.Join(folder, name+suffix))
		if err != nil {
			return nil, nil, err
		}
		block, _ := pem.Decode(data)
		if block == nil {
			return nil, nil, fmt.Errorf("%s%s holds no PEM", name, suffix)
		}
		blocks = append(blocks, block)
	}
	cert, err := x509.ParseCertificate(blocks[0].Bytes)
	if err != nil {
		return nil, nil, err
	}
	if blocks[1].Type == "RSA PRIVATE KEY" {
		key, err := x509.ParsePKCS1PrivateKey(blocks[1].Bytes)
		return cert, key, err
	}
	key, err := x509.ParseECPrivateKey(blocks[1].Bytes)
	return cert, key, err
}

func write(folder, name string, block *pem.Block) error {
	return os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600)
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
