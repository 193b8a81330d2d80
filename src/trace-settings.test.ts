import { expect, test } from 'vitest'
import { type BadSettings, readSettings } from './config.ts'

const ON = { OTEL_TRACES_EXPORTER: 'otlp' }

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readSettings(env)
    return []
  } catch (error) {
    return (error as BadSettings).problems
  }
}

test('traces are off by default, and the other variables may then be anything', () => {
  expect(readSettings({}).traces).toBeNull()
  const others = {
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'nowhere',
    OTEL_TRACES_SAMPLER: 'x',
  }
  expect(readSettings(others).traces).toBeNull()
  expect(readSettings({ ...others, OTEL_TRACES_EXPORTER: 'none' }).traces).toBeNull()
})

test('without other variables, traces go to the collector on this machine', () => {
  expect(readSettings(ON).traces).toEqual({
    url: new URL('http://localhost:4318/v1/traces'),
    headers: {},
    timeoutMs: 10_000,
    serviceName: 'pombal',
    resource: {},
    sampler: 'parentbased_always_on',
    ratio: 1,
  })
})

test.each([
  ['http://collector:4318', 'http://collector:4318/v1/traces'],
  ['http://collector:4318/', 'http://collector:4318/v1/traces'],
  ['https://collector/otlp', 'https://collector/otlp/v1/traces'],
  ['https://collector/otlp/', 'https://collector/otlp/v1/traces'],
])('below the endpoint %s', (endpoint, url) => {
  expect(readSettings({ ...ON, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }).traces?.url.href).toBe(url)
})

test('the endpoint of traces is used unchanged, and takes precedence', () => {
  const both = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:1', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://b:2/here' }
  expect(readSettings({ ...ON, ...both }).traces?.url.href).toBe('http://b:2/here')
})

test('headers and attributes are percent-encoded pairs', () => {
  const env = {
    OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Basic%20YTpi==, x-b = c',
    OTEL_RESOURCE_ATTRIBUTES: 'a=%C3%A9',
  }
  expect(readSettings({ ...ON, ...env }).traces).toMatchObject({
    headers: { Authorization: 'Basic YTpi==', 'x-b': 'c' },
    resource: { a: 'é' },
  })
})

test.each([
  ['OTEL_TRACES_EXPORTER', 'jaeger'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'ftp://collector'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a b=c'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=b%0D%0Ac: d'],
  ['OTEL_EXPORTER_OTLP_TIMEOUT', '0'],
  ['OTEL_RESOURCE_ATTRIBUTES', 'a=%zz'],
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '2'],
])('%s=%s is refused', (name, value) => {
  expect(problemsOf({ ...ON, [name]: value })).toEqual([expect.stringMatching(new RegExp(`^${name} must be `))])
})
