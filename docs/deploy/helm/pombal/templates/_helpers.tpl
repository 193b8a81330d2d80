{{- define "pombal.name" -}}
{{- if contains "pombal" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-pombal" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "pombal.selector" -}}
app.kubernetes.io/name: pombal
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pombal.labels" -}}
{{ include "pombal.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}
