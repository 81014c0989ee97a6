package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// pki makes keys and certificates below dir: NAME.key, NAME.crt and, for
// clients, NAME.kubeconfig.
type pki struct {
	dir    string
	server string // URL of the API server
	ca     *x509.Certificate
	key    *ecdsa.PrivateKey
}

// identity is one holder of a certificate: a server when it has names or addresses.
type identity struct {
	name      string // of the files
	user      string
	groups    []string
	names     []string
	addresses []netip.Addr
}

// newPKI makes the authority, and the key that signs ServiceAccount tokens.
func newPKI(dir, server string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pki{dir: dir, server: server}
	var err error
	if p.key, err = p.newKey("ca"); err != nil {
		return nil, err
	}
	template := certificate("podnet-k8s", nil)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	p.ca = template
	if p.ca, err = p.sign("ca", template, p.key); err != nil {
		return nil, err
	}
	_, err = p.newKey("service-accounts")
	return p, err
}

func certificate(user string, groups []string) *x509.Certificate {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // never fails
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		// Clocks do not differ here, but a clock may be set back.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.AddDate(1, 0, 0),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func (p *pki) newKey(name string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, p.write(name+".key", "EC PRIVATE KEY", der)
}

func (p *pki) sign(name string, template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s: %w", name, err)
	}
	if err := p.write(name+".crt", "CERTIFICATE", der); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (p *pki) write(file, kind string, der []byte) error {
	return os.WriteFile(p.path(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func (p *pki) path(file string) string { return filepath.Join(p.dir, file) }

// issue makes key, certificate and kubeconfig of an identity.
func (p *pki) issue(id identity) error {
	key, err := p.newKey(id.name)
	if err != nil {
		return err
	}
	template := certificate(id.user, id.groups)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(id.names)+len(id.addresses) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames = id.names
		for _, a := range id.addresses {
			template.IPAddresses = append(template.IPAddresses, net.IP(a.AsSlice()))
		}
	}
	if _, err := p.sign(id.name, template, key); err != nil {
		return err
	}
	// With the contents in place of the files' names: clients would watch those.
	var contents [3][]byte
	for i, file := range []string{"ca.crt", id.name + ".crt", id.name + ".key"} {
		var err error
		if contents[i], err = os.ReadFile(p.path(file)); err != nil {
			return err
		}
	}
	conf := clientcmdapi.NewConfig()
	conf.Clusters["podnet"] = &clientcmdapi.Cluster{Server: p.server, CertificateAuthorityData: contents[0]}
	conf.AuthInfos["user"] = &clientcmdapi.AuthInfo{ClientCertificateData: contents[1], ClientKeyData: contents[2]}
	conf.Contexts["podnet"] = &clientcmdapi.Context{Cluster: "podnet", AuthInfo: "user"}
	conf.CurrentContext = "podnet"
	return clientcmd.WriteToFile(*conf, p.path(id.name+".kubeconfig"))
}
