import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readSettings } from '../src/config.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }

/** Inline code that begins like this is a command. */
const COMMAND =
  /^(?:cat|cp|createdb|docker|export|helm|kill|kubectl|nginx|node|npm|npx|openssl|pg_\w+|pombal|printf|systemctl|systemd-analyze) \S/

/** How a command is executed. */
type Execution =
  /** The test or script `by` executes it. The file `in`, or else `by`, contains `text`. The section names `by`. */
  | { by: string; text: string; in?: string }
  /** The command is itself an npm script. */
  | 'is a script'

const DOCTOR = 'test/flows/operation/doctor.test.ts'
const BACKUP = 'test/flows/operation/backup.test.ts'
const DUMP = 'test/flows/operation/backup-postgres.test.ts'
const UPGRADE = 'test/flows/operation/upgrade-backup.test.ts'
const ALONE = 'test/flows/operation/restore/without-network.test.ts'
const MOVE = 'test/flows/operation/move/move-to-postgres.test.ts'
const BY_DOCKER = [
  'docker compose up --build',
  'docker compose up -d',
  'docker build -t pombal .',
  'docker run -d --name pombal -p 127.0.0.1:3000:3000 -v pombal:/data --stop-timeout 15 pombal',
  'until docker exec pombal pombal healthcheck; do sleep 1; done',
  'docker exec pombal cat /data/admin.key',
  'docker exec pombal pombal doctor',
  'docker stop pombal',
  'docker run --rm -v pombal:/data pombal vacuum',
  'docker start pombal',
  'docker compose -f compose.one-node.yaml up --build --wait',
  'docker compose -f compose.one-node.yaml run --rm pombal vacuum',
  'docker stop pombal && docker rm pombal',
  'docker compose build',
  'docker compose up -d --no-deps --wait node-1',
  'docker compose up -d --no-deps --wait node-2',
  'systemctl restart pombal',
  'systemd-run --pipe --wait -p EnvironmentFile=-/etc/pombal.env -E NODE_ENV=production -E DATA_DIR=/var/lib/pombal /opt/pombal/node_modules/node/bin/node /opt/pombal/node_modules/pombal/bin/pombal.js doctor',
  'npm pack',
  '(umask 022; npm install --prefix /opt/pombal ./pombal-0.1.0.tgz)',
  'cp docs/deploy/pombal.service /etc/systemd/system/',
  'systemctl daemon-reload && systemctl enable --now pombal',
  'until cat /var/lib/pombal/admin.key; do sleep 1; done',
]

const BACKUPS_BY_DOCKER = [
  'docker run -d --name restored --network none -e SANDBOX=off -v pombal:/data pombal',
  'until docker exec restored pombal healthcheck; do sleep 1; done',
  `docker exec restored node -e 'fetch("http://127.0.0.1:3000/admin/v1/instances", { headers: { authorization: "Bearer " + fs.readFileSync("/data/admin.key", "utf8").trim() } }).then(answer => answer.text()).then(console.log)'`,
  'docker exec pombal pombal backup /data/backups',
  'docker cp pombal:/data/backups .',
  'docker cp pombal:/data/media .',
  'docker cp pombal:/data/master.key .',
  'docker stop pombal',
  'docker run --rm -v pombal:/data pombal restore /data/backups/pombal-<moment>.db',
  'docker start pombal',
  `docker run --rm --user 0 -v pombal:/data -v "$PWD:/from:ro" --entrypoint sh pombal -c 'cp -r /from/master.key /from/backups /from/media /data && chown -R 1000:1000 /data'`,
  '(umask 077; docker compose exec -T database pg_dump --username=pombal --format=custom pombal > pombal.dump)',
  'docker compose cp node-1:/media .',
  `docker compose run --rm --user 0 --cap-add DAC_OVERRIDE --cap-add CHOWN --volume "$PWD/media:/from:ro" --entrypoint sh node-1 -c 'cp -r /from/. /media && chown -R 1000:1000 /media'`,
  'docker compose stop node-1 node-2',
  "docker compose exec -T database psql --username=pombal postgres -c 'alter database pombal rename to pombal_before'",
  'docker compose exec -T database createdb --username=pombal --encoding=UTF8 --template=template0 pombal',
  'docker compose exec -T database pg_restore --username=pombal --no-owner --dbname=pombal < pombal.dump',
  'docker compose up -d',
]

function byDocker(commands: readonly string[]): Record<string, Execution> {
  return Object.fromEntries(commands.map(text => [text, { by: 'npm run test:docker', text, in: 'test/docker/run.ts' }]))
}

const OPERATIONS: Readonly<Record<string, Execution>> = {
  ...byDocker(BY_DOCKER),
  'npm run cluster': { by: 'test/flows/nodes/cluster.test.ts', text: 'scripts/cluster.ts' },
  'npm run cluster -- --nodes 5 --port 9000': {
    by: 'test/flows/nodes/cluster.test.ts',
    text: "'--nodes', '2', '--port'",
  },
  'kill -9': { by: 'test/flows/nodes/cluster.test.ts', text: "'SIGKILL'" },
  [`(umask 077; set -C; printf 'ADMIN_KEY=%s\\nMASTER_KEY=%s\\nPOSTGRES_PASSWORD=%s\\n' "$(openssl rand -hex 32)" "$(openssl rand -base64 32)" "$(openssl rand -hex 16)" > .env)`]:
    { by: 'npm run test:docker', text: "umask 077; set -C; printf 'ADMIN_KEY=", in: 'test/docker/run.ts' },
  'npm run test:docker': 'is a script',
  'npm run test:image': 'is a script',
  'pombal move-to-postgres': { by: MOVE, text: 'runMove(' },
  'createdb --encoding=UTF8 --template=template0 pombal': { by: DUMP, text: 'createdb --encoding=UTF8' },
  'export DATABASE_URL=postgres://pombal:PASSWORD@db.example/pombal': { by: MOVE, text: 'DATABASE_URL' },
  'export DATA_DIR=./data': { by: MOVE, text: 'DATA_DIR' },
  'export MASTER_KEY="$(cat data/master.key)" ADMIN_KEY="$(cat data/admin.key)"': { by: MOVE, text: 'MASTER_KEY' },
  'npm run move-to-postgres': { by: MOVE, text: 'runMove(' },
  'npm run test:move': 'is a script',
  'nginx -s reload': {
    by: 'test/flows/nodes/balancers.test.ts',
    text: "'-s', 'reload'",
    in: 'test/flows/nodes/balancers.ts',
  },
  'npm run doctor': { by: DOCTOR, text: "run('doctor'" },
  'node bin/pombal.js healthcheck': { by: DOCTOR, text: "run('healthcheck'" },
  'npm run vacuum': { by: DOCTOR, text: "run('vacuum'" },
  'npm run bench -- --only idle': 'is a script',
  'npm run measure:disk': 'is a script',
  'npm run measure:disk -- --messages 1000': 'is a script',
  'npm run test:oldest-postgres': 'is a script',
}

const BACKUPS: Readonly<Record<string, Execution>> = {
  ...byDocker(BACKUPS_BY_DOCKER),
  'npm run test:docker': 'is a script',
  'npm run backup -- /backups': { by: BACKUP, text: "run('backup', folder" },
  'npm run backup': { by: BACKUP, text: "run('backup', folder" },
  'npm run restore -- /backups/pombal-<moment>.db': { by: BACKUP, text: "run('restore', file" },
  'npm run keys:rotate': { by: 'test/flows/operation/keys-rotate.test.ts', text: 'rotate-keys' },
  'npm run restore -- DATA_DIR/backups/before-upgrade-<moment>.db': { by: UPGRADE, text: "'restore'" },
  '(umask 077; pg_dump --format=custom --file=pombal.dump "$DATABASE_URL")': {
    by: DUMP,
    text: "commandsFrom('(umask 077; pg_dump')",
  },
  'createdb --owner=pombal --encoding=UTF8 --template=template0 pombal_restored': {
    by: DUMP,
    text: "commandsFrom('createdb')",
  },
  'pg_restore --no-owner --role=pombal --dbname=pombal_restored pombal.dump': {
    by: DUMP,
    text: "commandsFrom('createdb')",
  },
  'sudo unshare --net sh': { by: ALONE, text: "'sudo unshare --net sh'" },
  'ip link set lo up': { by: ALONE, text: 'commandsWithoutNetwork()' },
  'SANDBOX=off DATA_DIR=/srv/restored node bin/pombal.js serve &': { by: ALONE, text: 'commandsWithoutNetwork()' },
  'curl --retry 30 --retry-connrefused http://127.0.0.1:3000/readyz': { by: ALONE, text: 'commandsWithoutNetwork()' },
}

const DOCUMENTS: [string, Readonly<Record<string, Execution>>][] = [
  ['docs/operations.md', OPERATIONS],
  ['docs/backup.md', BACKUPS],
]

interface Command {
  text: string
  /** The text between its heading and the next one. */
  section: string
}

/** The commands in blocks, without comments, and those in inline code. */
function commandsOf(document: string): Command[] {
  return read(document)
    .split(/^(?=#+ )/m)
    .flatMap(section => {
      const blocks = Array.from(section.matchAll(/^ *```(?:sh)?\n([\s\S]*?)^ *```$/gm), ([, block = '']) => block)
      const lines = blocks.flatMap(block => block.replaceAll(/\\\n\s*/g, '').split('\n'))
      const prose = section.replaceAll(/^ *```[\s\S]*?^ *```$/gm, '')
      const inline = Array.from(prose.matchAll(/`([^`]+)`/g), ([, code = '']) => code.replaceAll(/\s+/g, ' '))
      const texts = [
        ...lines.map(line => line.replace(/\s+#.*$/, '').trim()),
        ...inline.filter(code => COMMAND.test(code)),
      ]
      return [...new Set(texts)].filter(text => text !== '').map(text => ({ text, section }))
    })
}

/** @returns what is wrong, or null */
function problemOf({ text, section }: Command, execution: Execution | undefined): string | null {
  const script = /^npm run (\S+)/.exec(text)?.[1]
  if (script !== undefined && !(script in scripts)) return `package.json has no script ${script}`
  if (execution === undefined) return 'no test or script is known to execute it'
  if (execution === 'is a script') return script === undefined ? 'it is not a script' : null
  const prose = section.replaceAll(/\s+/g, ' ')
  const file = execution.in ?? execution.by
  if (!existsSync(join(ROOT, file))) return `${file} does not exist`
  if (!read(file).includes(execution.text)) return `${file} does not contain ${execution.text}`
  return prose.includes(`\`${execution.by}\``) ? null : `its section does not name ${execution.by}`
}

describe.each(DOCUMENTS)('%s', (document, executions) => {
  const commands = commandsOf(document)

  test('a test or script executes each command, and is named in its section', () => {
    const problems = commands.flatMap(command => {
      const problem = problemOf(command, executions[command.text])
      return problem === null ? [] : [`${command.text}: ${problem}`]
    })
    expect(problems).toEqual([])
  })

  test('the table has no command that the document does not have', () => {
    const found = new Set(commands.map(({ text }) => text))
    expect(Object.keys(executions).filter(text => !found.has(text))).toEqual([])
  })
})

test('the command that writes .env writes keys that the service accepts, and never replaces them', () => {
  const command =
    commandsOf('docs/operations.md').find(({ text }) => text.startsWith('(umask 077; set -C; printf '))?.text ?? ''
  const folder = mkdtempSync(join(tmpdir(), 'pombal-env-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const paste = () => execFileSync('sh', ['-e', '-c', command], { cwd: folder, stdio: 'ignore' })
  paste()
  const written = readFileSync(join(folder, '.env'), 'utf8')
  expect(paste).toThrow('Command failed')
  expect(readFileSync(join(folder, '.env'), 'utf8')).toBe(written)
  const lines = written.trim().split('\n')
  const env = Object.fromEntries(lines.map(line => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]))
  expect(Object.keys(env)).toEqual(['ADMIN_KEY', 'MASTER_KEY', 'POSTGRES_PASSWORD'])
  expect((statSync(join(folder, '.env')).mode & 0o777).toString(8)).toBe('600')
  const settings = readSettings({ ...env, DATABASE_URL: `postgres://pombal:${env['POSTGRES_PASSWORD']}@db/pombal` })
  expect(settings.adminKey).toBe(env['ADMIN_KEY'])
  expect(settings.masterKey).toHaveLength(32)
})
