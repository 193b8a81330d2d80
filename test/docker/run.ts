import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { adminClient, instanceClient } from '../api-client.ts'
import { START_WITHIN_MS } from '../deadlines.ts'
import { killOnExit } from '../kill-on-exit.ts'
import { until } from '../until.ts'
import { docker, shell, succeeds } from './docker.ts'
import { provideImages, SYSTEMD } from './stand-ins.ts'

/**
 * `npm run test:docker`: runs the Docker and systemd commands of docs/operations.md as they stand there, in a copy of this
 * folder, and sends a message each time. It needs a Docker daemon with Compose, and removes what it made.
 */

const ROOT = join(import.meta.dirname, '../..')
const NOT_COPIED = new Set(['.git', 'node_modules', 'dist', '.env', 'data'])
const CLUSTER_URL = 'http://127.0.0.1:8080'
const NODE_URL = 'http://127.0.0.1:3000'
const HARDENED = '--read-only --cap-drop ALL --security-opt no-new-privileges'
const ONE_NODE = 'docker compose -f compose.one-node.yaml'
const START = 'docker run -d --name pombal -p 127.0.0.1:3000:3000 -v pombal:/data --stop-timeout 15 pombal'
const UNIT = 'pombal-test-unit'
const startedAt = performance.now()

function say(line: string): void {
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${line}`)
}

function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => resolve(socket.destroy() !== null))
    socket.once('error', () => resolve(false))
  })
}

/** Why the commands cannot be run on this machine. Null if they can. */
async function whyNot(): Promise<string | null> {
  if (!succeeds('version')) return 'no Docker daemon answers'
  if (!succeeds('compose', 'version')) return 'Docker has no Compose'
  for (const port of [3000, 8080]) if (await isListening(port)) return `port ${port} is in use`
  if (succeeds('container', 'inspect', 'pombal') || succeeds('volume', 'inspect', 'pombal'))
    return 'there is a container or volume named pombal'
  return null
}

/** Signs in, and sends a message until it is read. */
async function runMainJob(url: string, key: string): Promise<void> {
  const { id, token } = await adminClient(() => url, key).createConnected()
  const instance = instanceClient(() => url, id, token)
  const message = await instance.send('5511987654321', 'From a container')
  await until('message.read', async () => (await instance.message(message.id)).status === 'read', START_WITHIN_MS)
  say('✓ a message is read')
}

function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

const untilReady = (url: string) => until(`${url}/readyz`, () => isReady(url), START_WITHIN_MS)

async function runImage(run: (command: string) => Promise<string>): Promise<void> {
  await run('docker build -t pombal .')
  // The second run has only the rights that the document calls sufficient, and the data of the first run.
  for (const command of [START, START.replace(' -d ', ` -d ${HARDENED} `)]) {
    await run(command)
    await run('until docker exec pombal pombal healthcheck; do sleep 1; done')
    await runMainJob(NODE_URL, await run('docker exec pombal cat /data/admin.key'))
    await run('docker exec pombal pombal doctor')
    await run('docker stop pombal')
    await run('docker run --rm -v pombal:/data pombal vacuum')
    await run('docker start pombal')
    await untilReady(NODE_URL)
    const health = () => docker('inspect', '--format', '{{.State.Health.Status}}', 'pombal')
    await until('the health check to pass', () => health() === 'healthy', START_WITHIN_MS)
    docker('stop', 'pombal')
    const code = docker('inspect', '--format', '{{.State.ExitCode}}', 'pombal')
    if (code !== '0') throw new Error(`The container exited with ${code}.\n${docker('logs', 'pombal')}`)
    say('✓ healthy, and stopped with 0')
    docker('rm', 'pombal')
  }
}

async function runBackup(run: (command: string) => Promise<string>): Promise<void> {
  await run(START)
  await untilReady(NODE_URL)
  // No file was sent.
  await run('docker exec pombal mkdir -p /data/media')
  const [backup = ''] = /pombal-[^/]+\.db/.exec(await run('docker exec pombal pombal backup /data/backups')) ?? []
  await run('docker cp pombal:/data/backups .')
  await run('docker cp pombal:/data/media .')
  await run('docker cp pombal:/data/master.key .')
  const restore = () =>
    run(
      'docker run --rm -v pombal:/data pombal restore /data/backups/pombal-<moment>.db'.replace(
        'pombal-<moment>.db',
        backup,
      ),
    )
  await run('docker stop pombal')
  await restore()
  await run('docker start pombal')
  await untilReady(NODE_URL)
  await run('docker stop pombal && docker rm pombal')
  docker('volume', 'rm', 'pombal')
  await run(
    `docker run --rm --user 0 -v pombal:/data -v "$PWD:/from:ro" --entrypoint sh pombal -c 'cp -r /from/master.key /from/backups /from/media /data && chown -R 1000:1000 /data'`,
  )
  await restore()
  await run('docker run -d --name restored --network none -e SANDBOX=off -v pombal:/data pombal')
  await run('until docker exec restored pombal healthcheck; do sleep 1; done')
  const instances = await run(
    `docker exec restored node -e 'fetch("http://127.0.0.1:3000/admin/v1/instances", { headers: { authorization: "Bearer " + fs.readFileSync("/data/admin.key", "utf8").trim() } }).then(answer => answer.text()).then(console.log)'`,
  )
  if (!instances.includes('"inst_')) throw new Error(`The restored container has no instance: ${instances}`)
  docker('rm', '-f', 'restored')
  await run(START)
  await untilReady(NODE_URL)
  await runMainJob(NODE_URL, await run('docker exec pombal cat /data/admin.key'))
  docker('rm', '-f', 'pombal')
  say('✓ restored, also into a new volume')
}

async function runOneNode(run: (command: string) => Promise<string>): Promise<void> {
  await run('docker compose -f compose.one-node.yaml up --build --wait')
  await runMainJob(NODE_URL, await run(`${ONE_NODE} exec -T pombal cat /data/admin.key`))
  await run(`${ONE_NODE} stop`)
  await run('docker compose -f compose.one-node.yaml run --rm pombal vacuum')
  await run(`${ONE_NODE} down`)
}

async function runCluster(run: (command: string) => Promise<string>, folder: string): Promise<void> {
  const document = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')
  await run(/^\(umask 077; set -C; printf 'ADMIN_KEY=.*\\\n.*/m.exec(document)?.[0] ?? 'false')
  const command = 'docker compose up --build'
  say(`$ ${command}`)
  const compose = spawn('bash', ['-c', `exec ${command}`], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  })
  killOnExit(compose)
  let output = ''
  compose.stderr?.setEncoding('utf8').on('data', text => {
    output += text
  })
  const ended = once(compose, 'exit')
  await Promise.race([
    untilReady(CLUSTER_URL),
    ended.then(([code]) => Promise.reject(new Error(`${command} ended with ${code}.\n${output}`))),
  ])
  const key = /^ADMIN_KEY=(.*)$/m.exec(readFileSync(join(folder, '.env'), 'utf8'))?.[1] ?? ''
  await runMainJob(CLUSTER_URL, key)
  await Promise.all([run('docker compose stop node-1'), runMainJob(CLUSTER_URL, key)])
  await runMainJob(CLUSTER_URL, key)
  // Like Ctrl-C: a terminal also signals Compose itself, which Docker's program has started.
  process.kill(-compose.pid!, 'SIGINT')
  await ended
  await run('docker compose up -d')
  await untilReady(CLUSTER_URL)
  await runMainJob(CLUSTER_URL, key)
  await run('docker compose build')
  await run('docker compose up -d --no-deps --wait node-1')
  await run('docker compose up -d --no-deps --wait node-2')
  await run(
    '(umask 077; docker compose exec -T database pg_dump --username=pombal --format=custom pombal > pombal.dump)',
  )
  await run('docker compose cp node-1:/media .')
  await run(
    `docker compose run --rm --user 0 --cap-add DAC_OVERRIDE --cap-add CHOWN --volume "$PWD/media:/from:ro" --entrypoint sh node-1 -c 'cp -r /from/. /media && chown -R 1000:1000 /media'`,
  )
  await run('docker compose stop node-1 node-2')
  await run(
    "docker compose exec -T database psql --username=pombal postgres -c 'alter database pombal rename to pombal_before'",
  )
  await run('docker compose exec -T database createdb --username=pombal --encoding=UTF8 --template=template0 pombal')
  await run('docker compose exec -T database pg_restore --username=pombal --no-owner --dbname=pombal < pombal.dump')
  await run('docker compose up -d')
  await untilReady(CLUSTER_URL)
  await runMainJob(CLUSTER_URL, key)
  await run('docker compose stop')
}

/** Debian with systemd as its first process, as on a server. */
async function runUnit(run: (command: string) => Promise<string>, folder: string): Promise<void> {
  await run('npm ci --ignore-scripts --no-audit --no-fund')
  const packed = (await run('npm pack --silent')).split('\n').at(-1) ?? ''
  // systemd mounts file systems and creates control groups.
  const rights = '--cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined'.split(' ')
  const mounts = ['-v', '/sys/fs/cgroup:/sys/fs/cgroup:rw', '--tmpfs', '/run', '--tmpfs', '/tmp:exec']
  docker('run', '-d', '--name', UNIT, ...rights, '--cgroupns=host', ...mounts, '-p', '127.0.0.1:3000:3000', SYSTEMD)
  const inside = (command: string) => {
    say(`# ${command}`)
    return shell(`docker exec -w /root ${UNIT} bash -e -c '${command}'`, folder)
  }
  await until('systemd', () => succeeds('exec', UNIT, 'systemctl', 'list-units'), START_WITHIN_MS)
  await inside('mkdir -p docs')
  docker('cp', join(folder, packed), `${UNIT}:/root/${basename(packed)}`)
  docker('cp', join(folder, 'docs/deploy'), `${UNIT}:/root/docs/`)
  await inside('(umask 022; npm install --prefix /opt/pombal ./pombal-0.1.0.tgz)')
  await inside('cp docs/deploy/pombal.service /etc/systemd/system/')
  // Docker publishes only what listens on all addresses.
  await inside('printf "HOST=0.0.0.0\\nSANDBOX=on\\n" > /etc/pombal.env')
  await inside('systemctl daemon-reload && systemctl enable --now pombal')
  const key = await inside('until cat /var/lib/pombal/admin.key; do sleep 1; done')
  await untilReady(NODE_URL)
  await runMainJob(NODE_URL, key)
  await inside(
    'systemd-run --pipe --wait -p EnvironmentFile=-/etc/pombal.env -E NODE_ENV=production -E DATA_DIR=/var/lib/pombal /opt/pombal/node_modules/node/bin/node /opt/pombal/node_modules/pombal/bin/pombal.js doctor',
  )
  await inside('systemctl restart pombal')
  await untilReady(NODE_URL)
  await inside('systemctl stop pombal')
  const result = await inside('systemctl show --property=Result,ExecMainStatus pombal')
  if (result !== 'Result=success\nExecMainStatus=0') throw new Error(`The unit ended with ${result}`)
  say('✓ restarted and stopped by systemd')
}

const reason = await whyNot()
if (reason !== null) {
  console.log(`Skipped: ${reason}.`)
  process.exit(0)
}
const folder = mkdtempSync(join(tmpdir(), 'pombal-docker-'))
const run = (command: string) => {
  say(`$ ${command}`)
  return shell(command, folder)
}
let made: string[] = []
try {
  cpSync(ROOT, folder, { recursive: true, filter: path => !NOT_COPIED.has(basename(path)) })
  const base =
    /^ARG BASE=(?:docker\.io\/library\/)?(.+)$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))?.[1] ?? ''
  made = provideImages(base, say)
  await runImage(run)
  await runBackup(run)
  await runOneNode(run)
  await runCluster(run, folder)
  await runUnit(run, folder)
} finally {
  await shell(`${ONE_NODE} down -v`, folder).catch(() => undefined)
  await shell('docker compose down -v', folder).catch(() => undefined)
  succeeds('rm', '-f', '-v', 'pombal', 'restored', UNIT)
  succeeds('volume', 'rm', 'pombal')
  for (const image of ['pombal', ...made.reverse()]) succeeds('image', 'rm', image)
  rmSync(folder, { recursive: true, force: true })
}
