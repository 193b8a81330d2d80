import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { BadSettings, parseMasterKey, type Settings } from './config.ts'

const KEY_BYTES = 32
const PRIVATE_FILE = 0o600
const PRIVATE_FOLDER = 0o700

export interface Keys {
  adminKey: string
  /** Where a person finds the admin key: a file, or the environment. */
  adminKeyPlace: string
  masterKey: Buffer
}

/**
 * The keys from the settings, else from the data folder, where the first start makes them (mode 0600).
 * @throws BadSettings when a key file is damaged, or the master key is missing while the data is there
 */
export function openKeys(settings: Pick<Settings, 'dataDir' | 'databaseUrl' | 'adminKey' | 'masterKey'>): Keys {
  mkdirSync(settings.dataDir, { recursive: true, mode: PRIVATE_FOLDER })
  const adminFile = join(settings.dataDir, 'admin.key')
  return {
    adminKey: settings.adminKey ?? readOrMake(adminFile, 'base64url'),
    adminKeyPlace: settings.adminKey === null ? adminFile : 'the environment variable ADMIN_KEY',
    masterKey: settings.masterKey ?? openMasterKey(settings.dataDir),
  }
}

function openMasterKey(dataDir: string): Buffer {
  const file = join(dataDir, 'master.key')
  if (!existsSync(file) && existsSync(join(dataDir, 'pombal.db'))) {
    throw new BadSettings([
      `${file} is missing, and the data cannot be read without it: restore it, or set MASTER_KEY.`,
    ])
  }
  const key = parseMasterKey(readOrMake(file, 'base64'))
  if (!key)
    throw new BadSettings([`${file} does not hold the base64 of 32 bytes: restore it from where you keep your keys.`])
  return key
}

/** Two starts at once end with one and the same key: the file appears whole, and the first one stays. */
function readOrMake(file: string, encoding: 'base64' | 'base64url'): string {
  if (!existsSync(file)) {
    const draft = `${file}.${process.pid}`
    const descriptor = openSync(draft, 'w', PRIVATE_FILE)
    writeSync(descriptor, `${randomBytes(KEY_BYTES).toString(encoding)}\n`)
    fsyncSync(descriptor)
    closeSync(descriptor)
    try {
      linkSync(draft, file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      unlinkSync(draft)
    }
  }
  return readFileSync(file, 'utf8').trim()
}
