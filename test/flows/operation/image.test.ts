import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'

/** The checks of the image and of compose.yaml that need no Docker. */

const ROOT = join(import.meta.dirname, '../../..')
const read = (name: string) => readFileSync(join(ROOT, name), 'utf8')

/** The instructions, with continuation lines joined. */
const instructions = read('Dockerfile')
  .replace(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
  .filter(line => line !== '')
const lastStage = instructions.slice(instructions.findLastIndex(line => line.startsWith('FROM ')))

function argumentsOf(instruction: string, lines = lastStage): string[] {
  return lines.filter(line => line.startsWith(`${instruction} `)).map(line => line.slice(instruction.length + 1))
}

const has = (tool: string) => (process.env['PATH'] ?? '').split(':').some(folder => existsSync(join(folder, tool)))
const HAS_BASH = has('bash')
const HAS_SYSTEMD = has('systemd-analyze')
const SETTINGS = read('src/config.ts') + read('src/media-settings.ts')
/** Settings of `.env` reach the service, but cannot move it away from the port and folder of the image. */
const WITH_ENV_FILE = {
  env_file: [{ path: '.env', required: false }],
  environment: { HOST: '0.0.0.0', PORT: '3000', DATA_DIR: '/data' },
}
const HARDENED = { read_only: true, cap_drop: ['ALL'], stop_grace_period: '15s' }

interface ComposeService {
  image: string
  read_only?: boolean
  cap_drop?: string[]
  stop_grace_period?: string
  env_file?: { path: string; required: boolean }[]
  environment?: Record<string, string>
  volumes?: string[]
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[] }
  ports?: string[]
}

const compose = parse(read('compose.yaml'), { merge: true }) as {
  services: Record<string, ComposeService>
  configs: Record<string, { file: string }>
  volumes: object
}

test('the image runs the tested Node version as an unprivileged user, and the service gets the signals', () => {
  const { node } = JSON.parse(read('package.json')).dependencies
  expect(argumentsOf('ARG', instructions)).toEqual([`BASE=docker.io/library/node:${node}-bookworm-slim`])
  for (const from of argumentsOf('FROM', instructions)) expect(from).toMatch(/^(\$\{BASE\}|manifests)( AS \w+)?$/)
  expect(argumentsOf('USER')).toEqual(['1000:1000'])
  expect(JSON.parse(argumentsOf('ENTRYPOINT')[0] ?? '')).toEqual(['node', '/app/bin/pombal.js'])
  expect(JSON.parse(argumentsOf('CMD')[0] ?? '')).toEqual(['serve'])
  expect(argumentsOf('STOPSIGNAL')).toEqual(['SIGTERM'])
  expect(argumentsOf('ENV').join(' ')).not.toMatch(/KEY|PASSWORD|SECRET|DATABASE_URL/)
})

test('the image has the compiled program, the built panel, and neither sources nor tools', () => {
  const [, ofService] = argumentsOf('RUN npm ci', instructions)
  expect(ofService).toContain('--omit=dev')
  const copied = argumentsOf('COPY')
  for (const folder of ['bin', 'dist', 'panel/dist']) expect(copied).toContain(`--from=build /app/${folder} ${folder}`)
  expect(copied.filter(line => /\bsrc\b/.test(line))).toEqual([])
})

test('the image’s user can read every file, even if the clone was made with a restrictive umask', () => {
  const [readable = ''] = argumentsOf('RUN chmod -R a+rX', instructions)
  for (const line of argumentsOf('COPY')) {
    const [stage, ...sources] = line.split(' ').slice(0, -1)
    // npm has installed these.
    if (stage === '--from=modules') continue
    expect(stage, line).toBe('--from=build')
    for (const source of sources) expect(readable.split(' ')).toContain(source.replace('/app/', ''))
  }
})

test('the image’s labels name its version and its licences', () => {
  const [labels = ''] = argumentsOf('LABEL')
  expect(labels).toContain(`org.opencontainers.image.version="${JSON.parse(read('package.json')).version}"`)
  expect(labels).toContain('org.opencontainers.image.licenses="MIT AND GPL-3.0-only"')
})

test('every file that the image copies exists, and the build does not ignore it', () => {
  const ignored = read('.dockerignore').split('\n')
  const sources = argumentsOf('COPY', instructions)
    .filter(line => !line.startsWith('--from'))
    .flatMap(line => line.split(' ').slice(0, -1))
  for (const source of sources) {
    expect(existsSync(join(ROOT, source)), source).toBe(true)
    const allowed = ignored.some(line => line.startsWith('!') && `${source}/`.startsWith(`${line.slice(1)}/`))
    expect(allowed, source).toBe(true)
  }
})

test.skipIf(!HAS_BASH).each([
  [200, 0],
  [503, 1],
])('the image’s health check ends with %i → %i, without starting Node', async (status, code) => {
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/readyz' ? status : 404).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const [, json = ''] = argumentsOf('HEALTHCHECK')[0]?.split(' CMD ') ?? []
  const [command = '', ...args] = JSON.parse(json) as string[]
  const env = { PATH: process.env['PATH'], PORT: String((server.address() as AddressInfo).port) }
  const ended = await promisify(execFile)(command, args, { env }).then(
    () => 0,
    (error: { code: number }) => error.code,
  )
  server.close()
  expect(json).not.toContain('node')
  expect(ended).toBe(code)
})

test('the image has every file that backup, restore and the rotation of the keys load', async () => {
  const image = mkdtempSync(join(tmpdir(), 'pombal-image-'))
  try {
    for (const line of argumentsOf('COPY').map(text => text.replace(/^--from=\w+ /, '').replaceAll('/app/', ''))) {
      const parts = line.split(' ')
      const target = join(image, parts.at(-1) ?? '')
      for (const source of parts.slice(0, -1)) {
        if (source === 'node_modules') symlinkSync(join(ROOT, source), target)
        else {
          const isInFolder = parts.length > 2 || line.endsWith('/')
          cpSync(join(ROOT, source), isInFolder ? join(target, basename(source)) : target, { recursive: true })
        }
      }
    }
    expect(existsSync(join(image, 'LICENSE')) && existsSync(join(image, 'NOTICE'))).toBe(true)
    const env = { PATH: process.env['PATH'], DATA_DIR: join(image, 'data') }
    for (const script of ['backup', 'restore', 'rotate-keys']) {
      const args = [join(image, 'bin/pombal.js'), script, join(image, 'x')]
      const said = await promisify(execFile)(process.execPath, args, { env }).then(
        ({ stdout }) => stdout,
        (error: { stderr: string }) => error.stderr,
      )
      expect(said, script).not.toMatch(/ {4}at |ERR_MODULE_NOT_FOUND/)
      expect(said.trim(), script).not.toBe('')
    }
  } finally {
    rmSync(image, { recursive: true })
  }
})

test('a production installation includes Node and the tools that build the panel', () => {
  const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, { dev?: boolean }> }
  for (const name of ['node', 'vite', '@vitejs/plugin-react']) {
    expect(packages[`node_modules/${name}`]?.dev, name).toBeUndefined()
  }
})

test('compose.yaml runs two equal, hardened nodes on one PostgreSQL, behind a balancer that uses both', () => {
  const { database, balancer, ...nodes } = compose.services
  expect(Object.keys(nodes)).toEqual(['node-1', 'node-2'])
  expect(nodes['node-1']).toEqual(nodes['node-2'])
  const node = nodes['node-1'] as ComposeService
  expect(node).toMatchObject({ ...HARDENED, ...WITH_ENV_FILE })
  expect(node.depends_on).toEqual({ database: { condition: 'service_healthy' } })
  expect(database?.healthcheck?.test).toContain('pg_isready')
  expect(balancer?.healthcheck).toBeDefined()
  expect(balancer?.ports?.every(port => port.startsWith('127.0.0.1:'))).toBe(true)
  expect(Object.values(balancer?.depends_on ?? {})).toEqual([
    { condition: 'service_healthy' },
    { condition: 'service_healthy' },
  ])
  const [exposed] = argumentsOf('EXPOSE')
  expect(read(compose.configs['balancer']?.file ?? '')).toContain(`reverse_proxy node-1:${exposed} node-2:${exposed} {`)
})

test('compose.yaml contains no secret, and only settings that the service reads', () => {
  for (const [name, value] of Object.entries(compose.services['node-1']?.environment ?? {})) {
    expect(SETTINGS).toContain(`'${name}'`)
    if (/KEY|URL/.test(name) && !['PUBLIC_URL', 'MEDIA_URL'].includes(name)) expect(value).toMatch(/\$\{\w+:\?\}/)
  }
})

test('the nodes of compose.yaml share a volume for files, which belongs to their user', () => {
  const node = compose.services['node-1']
  expect(node?.environment?.['MEDIA_URL']).toContain('file:///media')
  expect(node?.volumes).toEqual(['media:/media'])
  expect(compose.volumes).toHaveProperty('media')
  // A new volume takes the owner of the folder in the image.
  expect(argumentsOf('RUN').join('\n')).toMatch(/install -d -o 1000 -g 1000 .*\/media\b/)
})

test('the balancer of compose.yaml passes on the address that a proxy with TLS in front of it reports', () => {
  expect(read('docs/deploy/compose.Caddyfile')).toMatch(/^\t\ttrusted_proxies private_ranges$/m)
})

test.each([
  ['haproxy.cfg', 'http-request set-header X-Forwarded-For %[src]', 'option forwardfor'],
  ['nginx.conf', 'proxy_set_header X-Forwarded-For $remote_addr;', '$proxy_add_x_forwarded_for'],
])('%s replaces the address that a caller claims, and does not append to it', (file, replacing, appending) => {
  const lines = read(`docs/deploy/${file}`).replaceAll(/^\s*#.*$/gm, '')
  expect(lines).toContain(replacing)
  expect(lines).not.toContain(appending)
})

test('compose.one-node.yaml runs one hardened node whose data persists, reachable from this machine only', () => {
  const { services, volumes } = parse(read('compose.one-node.yaml')) as {
    services: Record<string, ComposeService>
    volumes: object
  }
  expect(Object.keys(services)).toEqual(['pombal'])
  const [exposed] = argumentsOf('EXPOSE')
  expect(services['pombal']).toMatchObject({
    ...HARDENED,
    ...WITH_ENV_FILE,
    ports: [`127.0.0.1:${exposed}:${exposed}`],
    volumes: ['data:/data'],
  })
  expect(volumes).toHaveProperty('data')
  for (const name of Object.keys(services['pombal']?.environment ?? {})) expect(SETTINGS).toContain(`'${name}'`)
})

test.each([
  [
    'docs/operations.md',
    /^docker run -d --name pombal .*\nuntil docker exec pombal .*\ndocker exec pombal cat \S+admin\.key/m,
  ],
  ['docs/operations.md', /enable --now pombal\nuntil cat \S+admin\.key; /],
  ['docs/backup.md', /^docker run -d --name restored .*\nuntil docker exec restored .*\ndocker exec restored node/m],
  ['compose.one-node.yaml', / up .*--wait\n.* cat \S+admin\.key/],
])('pasted at once, the commands in %s wait until the first start has created the admin key', (file, block) => {
  expect(read(file)).toMatch(block)
})

describe('docs/deploy/pombal.service', () => {
  const unit = read('docs/deploy/pombal.service')

  test('starts files that the package has, and gives a stop its time', () => {
    const [node, program] = /^ExecStart=(\S+) (\S+) serve$/m.exec(unit)?.slice(1) ?? []
    expect(node).toBe('/opt/pombal/node_modules/node/bin/node')
    expect(program).toBe(`/opt/pombal/node_modules/pombal/${JSON.parse(read('package.json')).bin.pombal}`)
    expect(unit).toContain(`TimeoutStopSec=${Number.parseInt(HARDENED.stop_grace_period, 10)}\n`)
    for (const name of ['NODE_ENV', 'DATA_DIR']) expect(unit).toContain(`${name}=`)
  })

  test.skipIf(!HAS_SYSTEMD)('is a unit that systemd can load', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pombal-unit-'))
    // The program is not installed here.
    writeFileSync(join(folder, 'pombal.service'), unit.replace(/^ExecStart=.*$/m, 'ExecStart=/bin/true'))
    // Its exit code is also about other units of this machine.
    const output = await new Promise<string>(resolve => {
      execFile('systemd-analyze', ['verify', join(folder, 'pombal.service')], (_, out, err) => resolve(out + err))
    })
    rmSync(folder, { recursive: true })
    expect(output.split('\n').filter(line => line.includes('pombal.service'))).toEqual([])
  })
})
