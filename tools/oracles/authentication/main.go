// authentication judges an AuthenticationConfiguration on standard input as the API server does when it starts:
// decoded strictly, defaulted and validated, its CEL expressions compiled. It exits with 1 and says why it is refused.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// What kube-apiserver's --service-account-issuer holds unless told otherwise.
var serviceAccountIssuers = []string{"https://kubernetes.default.svc.cluster.local"}

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = judge(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// judge takes the steps of kube-apiserver: loadAuthenticationConfig in pkg/kubeapiserver/options/authentication.go.
func judge(text []byte) error {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	decoded, err := runtime.Decode(codecs.UniversalDecoder(), text)
	if err != nil {
		return err
	}
	configuration, ok := decoded.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return fmt.Errorf("expected AuthenticationConfiguration, got %T", decoded)
	}
	compiler := cel.NewCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	return validation.ValidateAuthenticationConfiguration(compiler, configuration, serviceAccountIssuers).ToAggregate()
}
