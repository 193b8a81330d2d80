import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCertificate } from '../../certificate.ts'
import { killOnExit } from '../../kill-on-exit.ts'

const EXAMPLES = join(import.meta.dirname, '../../../docs/deploy')

export function freePort(): Promise<number> {
  return new Promise(resolve => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

/** A balancer in front of two nodes on this machine, with TLS. */
export interface Balancer {
  url: string
  /** The certificate, in PEM. */
  ca: string
  /** Whether callers may keep connections open while nodes are taken out. */
  keepAlive: boolean
  /** What the operator does before a node stops. */
  takeOut(node: number): Promise<void>
  /** What the operator does when the node runs again. */
  putBack(node: number): Promise<void>
  stop(): void
}

interface Example {
  program: string
  start(ports: readonly number[]): Promise<Balancer>
}

/** The examples in docs/deploy, with the addresses and the certificate of the test. */
export const BALANCERS: Record<'Caddy' | 'HAProxy' | 'nginx', Example> = {
  Caddy: {
    program: '/usr/bin/caddy',
    start: nodes =>
      run(async ({ folder, port, cert, key }) => {
        const site = withNodes('Caddyfile', nodes).replace(
          /^pombal\.example \{/m,
          `{\n\tadmin off\n\tauto_https disable_redirects\n}\nhttps://localhost:${port} {\n\tbind 127.0.0.1\n\ttls ${cert} ${key}`,
        )
        const file = write(folder, 'Caddyfile', site)
        return { child: start(BALANCERS.Caddy.program, ['run', '--config', file, '--adapter', 'caddyfile'], folder) }
      }),
  },
  HAProxy: {
    program: '/usr/sbin/haproxy',
    start: nodes =>
      run(async ({ folder, port, pem }) => {
        const config = withNodes('haproxy.cfg', nodes)
          .replace('bind :443', `bind 127.0.0.1:${port}`)
          .replace('/etc/haproxy/pombal.pem', pem)
        return { child: start(BALANCERS.HAProxy.program, ['-db', '-f', write(folder, 'haproxy.cfg', config)], folder) }
      }),
  },
  nginx: {
    program: '/usr/sbin/nginx',
    start: nodes =>
      run(async ({ folder, port, cert, key }) => {
        const site = withNodes('nginx.conf', nodes)
          .replace('listen 443', `listen 127.0.0.1:${port}`)
          .replace('/etc/nginx/pombal.crt', cert)
          .replace('/etc/nginx/pombal.key', key)
        write(folder, 'site.conf', site)
        const main = write(folder, 'nginx.conf', nginxAround(folder))
        const child = start(BALANCERS.nginx.program, ['-e', 'stderr', '-c', main], folder)
        const reload = async (text: string) => {
          write(folder, 'site.conf', text)
          execFileSync(BALANCERS.nginx.program, ['-e', 'stderr', '-c', main, '-s', 'reload'])
        }
        return {
          child,
          // Its old processes close idle connections when it reads its configuration again.
          keepAlive: false,
          takeOut: node => reload(site.replace(`:${nodes[node]} max_fails`, `:${nodes[node]} down max_fails`)),
          putBack: () => reload(site),
        }
      }),
  },
}

interface Place {
  folder: string
  port: number
  cert: string
  key: string
  /** The certificate and its key in one file. */
  pem: string
}

type Started = { child: ChildProcess } & Partial<Pick<Balancer, 'keepAlive' | 'takeOut' | 'putBack'>>

async function run(launch: (place: Place) => Promise<Started>): Promise<Balancer> {
  const folder = mkdtempSync(join(tmpdir(), 'pombal-balancer-'))
  const port = await freePort()
  const { cert, key } = createCertificate()
  const place = {
    folder,
    port,
    cert: write(folder, 'cert.pem', cert),
    key: write(folder, 'key.pem', key),
    pem: write(folder, 'both.pem', `${cert}\n${key}`),
  }
  const {
    child,
    keepAlive = true,
    takeOut = async () => undefined,
    putBack = async () => undefined,
  } = await launch(place)
  return {
    url: `https://localhost:${port}`,
    ca: cert,
    keepAlive,
    takeOut,
    putBack,
    stop() {
      // nginx ends its other processes too.
      child.kill('SIGTERM')
      child.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    },
  }
}

function withNodes(example: string, ports: readonly number[]): string {
  const text = readFileSync(join(EXAMPLES, example), 'utf8')
  return text.replaceAll(/10\.0\.0\.1(\d):3000/g, (_, number) => `127.0.0.1:${ports[number - 1]}`)
}

function nginxAround(folder: string): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `daemon off;
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    pid ${folder}/pid;
    events {}
    http {
      access_log off;
      ${paths.map(name => `${name}_temp_path ${folder}/${name};`).join('\n')}
      include ${folder}/site.conf;
    }`
}

function write(folder: string, name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

function start(program: string, args: readonly string[], folder: string): ChildProcess {
  const child = spawn(program, args, {
    stdio: 'ignore',
    env: { PATH: process.env['PATH'], HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  })
  killOnExit(child)
  return child
}
