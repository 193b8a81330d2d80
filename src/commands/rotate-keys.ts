// Re-encrypts everything under a new master key while the service is stopped. docs/security.md describes when and how.
import { BadSettings, MASTER_KEY_FORMAT, parseMasterKey, readSettings, type Settings } from '../config.ts'
import { Environment } from '../environment.ts'
import { openMasterKeyFiles } from '../keys.ts'
import { rotateMasterKey } from '../store/encryption/key-rotation.ts'
import { commandSetting, isForOperator } from './for-operator.ts'

const PROGRESS_STEP = 0.05

interface Keys {
  current: Uint8Array
  next(): Uint8Array
  adopt(): void
  nextSteps(): string
}

/** A key in the data folder is created and replaced here. A key from the environment is replaced by the operator. */
function keysOf({ masterKey, dataDir }: Settings): Keys {
  const given = commandSetting(new Environment(process.env), 'NEW_MASTER_KEY')
  if (masterKey !== null) return keysFromEnvironment(masterKey, given)
  if (given)
    throw new BadSettings([
      'NEW_MASTER_KEY works only with MASTER_KEY. Without MASTER_KEY, the new key is created in the data folder: unset NEW_MASTER_KEY.',
    ])
  const { current, next, adopt } = openMasterKeyFiles(dataDir)
  let replaced: string | null = null
  return {
    current,
    next,
    adopt() {
      replaced = adopt()
    },
    nextSteps: () =>
      replaced === null
        ? 'The new key is in force: start the service.'
        : `The new key is in force: start the service, and keep a copy of ${dataDir}/master.key where you keep your keys.\n` +
          `Earlier backups need the old key, ${replaced}: delete it when you no longer keep such a backup.`,
  }
}

function keysFromEnvironment(current: Uint8Array, given: string | null): Keys {
  const next = given === null ? undefined : parseMasterKey(given)
  if (next === undefined)
    throw new BadSettings([`NEW_MASTER_KEY must be the key that replaces MASTER_KEY: ${MASTER_KEY_FORMAT}.`])
  if (next.equals(current)) throw new BadSettings(['NEW_MASTER_KEY is the same as MASTER_KEY.'])
  return {
    current,
    next: () => next,
    adopt: () => undefined,
    nextSteps: () =>
      'Start every node with MASTER_KEY set to the new key. Earlier backups need the old key: keep it as long as you keep them.',
  }
}

/** Prints a line for every 5%. */
function createProgress(): (done: number, total: number) => void {
  let shown = -1
  return (done, total) => {
    const part = total === 0 ? 1 : done / total
    if (part < 1 && part - shown < PROGRESS_STEP) return
    shown = part
    say(`${done} of ${total} values are under the new key.`)
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

async function run(): Promise<void> {
  const settings = readSettings(process.env)
  const keys = keysOf(settings)
  const outcome = await rotateMasterKey({
    dataDir: settings.dataDir,
    databaseUrl: settings.databaseUrl ?? undefined,
    currentKey: keys.current,
    nextKey: keys.next,
    adopt: keys.adopt,
    onProgress: createProgress(),
  })
  if (outcome.kind === 'already') say('All values were under the new key already.')
  else if (outcome.unreadable > 0)
    say(`${outcome.unreadable} values could be read with neither key: they were damaged before, and were not changed.`)
  say(keys.nextSteps())
}

process.umask(0o077)
try {
  await run()
} catch (error) {
  if (!isForOperator(error)) throw error
  process.stderr.write(`The key was not rotated: ${error.message}\n`)
  process.exitCode = 1
}
