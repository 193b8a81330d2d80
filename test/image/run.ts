import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { adminClient, instanceClient } from '../api-client.ts'
import { START_WITHIN_MS } from '../deadlines.ts'
import { findFreePort } from '../free-port.ts'
import { until } from '../until.ts'
import { buildImage, type ImageConfig, unmount, whyNot } from './build-image.ts'
import { Container } from './container.ts'

/** `npm run test:image`: builds the image and runs it read-only, as uid 1000 and without capabilities, until a message is read. */

const UID = 1_000
const startedAt = performance.now()

function say(line: string): void {
  console.log(`${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${line}`)
}

function check(what: string, isRight: boolean, found: unknown): void {
  if (!isRight) throw new Error(`${what}: ${JSON.stringify(found)}`)
  say(`✓ ${what}`)
}

function healthCommand({ Healthcheck: { Test } }: ImageConfig): string[] {
  const [kind, ...command] = Test
  return kind === 'CMD-SHELL' ? ['/bin/sh', '-c', ...command] : command
}

async function runMainJob(container: Container, config: ImageConfig, url: string, data: string): Promise<void> {
  const health = healthCommand(config)
  await until(
    'the health check to pass',
    async () => {
      const { code } = await container.exec(health)
      if (container.hasEnded) throw new Error(`The container has ended.\n${container.output}`)
      return code === 0
    },
    START_WITHIN_MS,
  )
  say('✓ the health check passes, without starting Node')
  const admin = adminClient(() => url, readFileSync(join(data, 'admin.key'), 'utf8').trim())
  const { id, token } = await admin.createConnected()
  const instance = instanceClient(() => url, id, token)
  const message = await instance.send('5511987654321', 'From a container')
  await until('message.read', async () => (await instance.message(message.id)).status === 'read')
  say('✓ a message is read')
  const panel = await fetch(url)
  check('the panel is served', (await panel.text()).includes('<title>Pombal'), panel.status)
  const doctor = await container.exec(['pombal', 'doctor'])
  check('pombal doctor finds no problem in the container', doctor.code === 0, doctor)
  const backup = await container.exec(['pombal', 'backup', '/data'])
  check('pombal backup runs beside the service', backup.code === 0, backup)
}

async function runImage(folder: string): Promise<void> {
  const image = buildImage(folder, say)
  const { config, files } = image
  const labels = Object.keys(config.Labels).filter(name => name.startsWith('org.opencontainers.image.'))
  check('the image has its labels', labels.length >= 4, labels)
  for (const name of ['LICENSE', 'NOTICE', 'dist/LICENCES.txt', 'dist/sbom.cdx.json'])
    check(`the image has ${name}`, existsSync(join(files, 'app', name)), name)
  check('no source is in the image', !existsSync(join(files, 'app/src')), 'src')
  say(
    `The image without its base: ${execFileSync('du', ['-sh', join(files, 'app')], { encoding: 'utf8' }).split('\t')[0]}B`,
  )

  const data = join(folder, 'data')
  mkdirSync(data)
  chownSync(data, UID, UID)
  const port = await findFreePort()
  const container = new Container(image, { data, env: { PORT: String(port), HOST: '127.0.0.1' } })
  await runMainJob(container, config, `http://127.0.0.1:${port}`, data)
  container.stop()
  const code = await container.exited
  check('SIGTERM ends the service with 0', code === 0, { code, output: container.output })
}

const reason = whyNot()
if (reason !== null) {
  console.log(`Skipped: the image cannot be built here, ${reason}.`)
  process.exit(0)
}
const folder = mkdtempSync(join(tmpdir(), 'pombal-image-'))
try {
  await runImage(folder)
} finally {
  unmount(folder)
  rmSync(folder, { recursive: true, force: true })
}
