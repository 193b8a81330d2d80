import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Compile } from 'typebox/schema'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments, parseDocument } from 'yaml'

/** The Helm chart. `helm template` renders it where Helm is installed; the other checks run everywhere. */

const ROOT = join(import.meta.dirname, '../../..')
const CHART = join(ROOT, 'docs/deploy/helm/pombal')
const read = (name: string) => readFileSync(join(CHART, name), 'utf8')
const templates = readdirSync(join(CHART, 'templates')).map(name => ({ name, text: read(`templates/${name}`) }))
const manifests = templates.filter(({ name }) => name.endsWith('.yaml'))
const version: string = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version
const settings = readFileSync(join(ROOT, 'README.md'), 'utf8')
const HAS_HELM = (process.env['PATH'] ?? '').split(':').some(folder => existsSync(join(folder, 'helm')))

const values = parse(read('values.yaml'))
const accepts = (changes: object) => schema.Check({ ...values, ...changes })
const schema = Compile(JSON.parse(read('values.schema.json')))

/** The file without Helm's instructions: lines of only an instruction are removed, others become the word `inserted`. */
function structureOf(text: string) {
  return text.replace(/^\s*\{\{.*\}\}\n/gm, '').replaceAll(/"?\{\{.*?\}\}(:\{\{.*?\}\})?"?/g, 'inserted')
}

interface Deployment {
  kind: string
  spec: {
    replicas: number | string
    strategy: { rollingUpdate: object }
    template: { spec: PodSpec }
  }
}

interface PodSpec {
  terminationGracePeriodSeconds: number
  securityContext: object
  containers: {
    securityContext: object
    env: { name: string; value: string }[]
    ports: { containerPort: number | string }[]
    volumeMounts: { mountPath: string }[]
    [probe: `${string}Probe`]: { httpGet: { path: string } }
  }[]
}

function checkPods({ strategy, template }: Deployment['spec']): void {
  expect(strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 })
  const { containers, ...pod } = template.spec
  const compose = parse(readFileSync(join(ROOT, 'compose.yaml'), 'utf8'), { merge: true }).services['node-1']
  expect(`${pod.terminationGracePeriodSeconds}s`).toBe(compose.stop_grace_period)
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
  const [container] = containers
  expect(container!.securityContext).toEqual({
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
  })
  expect(container!.ports[0]!.containerPort).toBe(3000)
  expect(container!.readinessProbe!.httpGet.path).toBe('/readyz')
  expect(container!.livenessProbe!.httpGet.path).toBe('/healthz')
  expect(container!.startupProbe!.httpGet.path).toBe('/healthz')
  expect(container!.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(['/data', '/tmp'])
  for (const { name } of container!.env.filter(({ name }) => name !== 'inserted'))
    expect(settings).toContain(`\`${name}\``)
}

test('the chart has the version of the service', () => {
  expect(parse(read('Chart.yaml'))).toMatchObject({ apiVersion: 'v2', name: 'pombal', version, appVersion: version })
})

test('three nodes by default, which drain as those of compose.yaml do', () => {
  const compose = parse(readFileSync(join(ROOT, 'compose.yaml'), 'utf8'), { merge: true }).services['node-1']
  expect(values.replicas).toBe(3)
  expect(String(values.drainSeconds)).toBe(compose.environment.DRAIN_SECONDS)
  expect(JSON.stringify(values)).not.toMatch(/postgres:\/\/|_KEY/)
})

test('the schema accepts the values of the chart, and refuses mistakes', () => {
  expect(accepts({})).toBe(true)
  expect(accepts({ existingSecret: 'pombal', mediaUrl: 's3://files', settings: { RETENTION_DAYS: 7 } })).toBe(true)
  for (const wrong of [
    { replicas: 0 },
    { replica: 2 },
    { mediaUrl: 'file:///data' },
    { drainSeconds: 6 },
    { sandbox: true },
    { settings: { retentionDays: 7 } },
    { settings: { PORT: 8080 } },
    { settings: { METRICS_PORT: '9100' } },
    { settings: { WHATSAPP_THREADS: 4 } },
    { whatsappThreads: 0 },
    { settings: { DATABASE_URL: 'postgres://db/pombal' } },
    { image: { tag: '1' } },
  ])
    expect(accepts(wrong), JSON.stringify(wrong)).toBe(false)
})

describe.each(manifests)('$name', ({ text }) => {
  test('is YAML around the instructions of Helm, which are closed', () => {
    const { errors, contents } = parseDocument(structureOf(text))
    expect(errors).toEqual([])
    expect(contents?.toJSON()).toMatchObject({ kind: expect.any(String), metadata: { name: 'inserted' } })
    const count = (pattern: RegExp) => [...text.matchAll(pattern)].length
    expect(count(/\{\{-? *(if|with|range)\b/g)).toBe(count(/\{\{-? *end\b/g))
    expect(count(/\{\{/g)).toBe(count(/\}\}/g))
  })

  test('names only values that the chart has, and templates that it defines', () => {
    for (const [, path = ''] of text.matchAll(/\.Values\.([\w.]+)/g)) {
      const value = path
        .split('.')
        .reduce((part: Record<string, unknown> | undefined, name) => part?.[name] as never, values)
      expect(value, path).toBeDefined()
    }
    const helpers = templates.find(({ name }) => name === '_helpers.tpl')!.text
    for (const [, name] of text.matchAll(/include "([\w.]+)"/g)) expect(helpers).toContain(`define "${name}"`)
  })
})

test('the pods are hardened, get their time to stop, and have only settings of the service', () => {
  const { spec } = parse(structureOf(read('templates/deployment.yaml'))) as Deployment
  expect(spec.replicas).toBe('inserted')
  checkPods(spec)
})

describe.skipIf(!HAS_HELM)('as Helm renders it', () => {
  const helm = (...options: string[]) => execFileSync('helm', options, { encoding: 'utf8', stdio: 'pipe' })

  test('three nodes that share a Secret and a bucket', () => {
    helm('lint', '--strict', CHART, '--set', 'existingSecret=keys')
    const set = [
      'existingSecret=keys',
      'mediaUrl=s3://files',
      'ingress.enabled=true',
      'ingress.host=pombal.example',
      'metricsPort=9100',
    ]
    const rendered = helm('template', 'test', CHART, ...set.flatMap(value => ['--set', value]))
    const objects = parseAllDocuments(rendered).map(document => document.toJSON() as Deployment)
    expect(objects.map(({ kind }) => kind).sort()).toEqual(['Deployment', 'Ingress', 'PodDisruptionBudget', 'Service'])
    const { spec } = objects.find(({ kind }) => kind === 'Deployment')!
    expect(spec.replicas).toBe(3)
    checkPods(spec)
    expect(spec.template.spec.containers[0]!.env).toContainEqual({ name: 'MEDIA_URL', value: 's3://files' })
  })

  test('a large number is rendered with all its digits', () => {
    const set = ['existingSecret=keys']
    const json = 'settings={"RATE_LIMIT_PER_MINUTE":1000000,"MESSAGE_TTL_HOURS":0.5,"LOG_LEVEL":"warn"}'
    const rendered = helm('template', 'test', CHART, ...set.flatMap(value => ['--set', value]), '--set-json', json)
    const objects = parseAllDocuments(rendered).map(document => document.toJSON() as Deployment)
    const { env } = objects.find(({ kind }) => kind === 'Deployment')!.spec.template.spec.containers[0]!
    expect(env).toContainEqual({ name: 'RATE_LIMIT_PER_MINUTE', value: '1000000' })
    expect(env).toContainEqual({ name: 'MESSAGE_TTL_HOURS', value: '0.5' })
    expect(env).toContainEqual({ name: 'LOG_LEVEL', value: 'warn' })
  })

  test('nothing without a Secret', () => {
    expect(() => helm('template', 'test', CHART)).toThrow(/Set existingSecret/)
  })
})
