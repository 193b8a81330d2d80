import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ADMIN_KEY_FORMAT, BadSettings, parseAdminKey, parseMasterKey, type Settings } from './config.ts'
import { syncFolder } from './store/engine/sync-to-disk.ts'

const KEY_BYTES = 32
const PRIVATE_FILE = 0o600
const PRIVATE_FOLDER = 0o700
/** What the file allows its group and everybody else. */
const OTHERS = 0o077

export interface Keys {
  adminKey: string
  /** Where a person finds the admin key: a file, or the environment. */
  adminKeyPlace: string
  masterKey: Buffer
}

/**
 * The keys from the settings, else from the data folder, where the first start makes them (mode 0600).
 * @throws BadSettings when a key file is damaged or open to others, or the master key is missing while the data is there
 */
export function openKeys(settings: Pick<Settings, 'dataDir' | 'databaseUrl' | 'adminKey' | 'masterKey'>): Keys {
  mkdirSync(settings.dataDir, { recursive: true, mode: PRIVATE_FOLDER })
  const adminFile = join(settings.dataDir, 'admin.key')
  return {
    adminKey: settings.adminKey ?? openAdminKey(adminFile),
    adminKeyPlace: settings.adminKey === null ? adminFile : 'the environment variable ADMIN_KEY',
    masterKey: settings.masterKey ?? openMasterKey(settings.dataDir),
  }
}

/** What a rotation of the master key in the data folder needs of its files. */
export interface MasterKeyFiles {
  current: Buffer
  /** The same at every call, until it is adopted: from `master.key.next`, where the first call makes it. */
  next(): Buffer
  /**
   * The next key takes the place of the current one, in one step. The replaced key stays beside it, for backups made before.
   * @returns its file
   */
  adopt(): string
}

/** @throws BadSettings when there is no key file, or it is damaged */
export function openMasterKeyFiles(dataDir: string): MasterKeyFiles {
  const file = join(dataDir, 'master.key')
  const nextFile = `${file}.next`
  if (!existsSync(file)) throw new BadSettings([`${file} is missing: there is no key to rotate.`])
  const replacedFile = `${file}.replaced-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`
  return {
    current: readKey(file),
    next: () => parseKey(nextFile, readOrMake(nextFile, 'base64')),
    adopt() {
      if (existsSync(nextFile)) {
        if (!existsSync(replacedFile)) linkSync(file, replacedFile)
        renameSync(nextFile, file)
        syncFolder(dataDir)
      }
      return replacedFile
    },
  }
}

function openAdminKey(file: string): string {
  const key = parseAdminKey(readOrMake(file, 'base64url'))
  if (key === undefined)
    throw new BadSettings([
      `${file} does not hold ${ADMIN_KEY_FORMAT}: delete it, and the next start makes a new key; or set ADMIN_KEY.`,
    ])
  return key
}

function openMasterKey(dataDir: string): Buffer {
  const file = join(dataDir, 'master.key')
  if (!existsSync(file) && existsSync(join(dataDir, 'pombal.db'))) {
    throw new BadSettings([
      `${file} is missing, and the data cannot be read without it: restore it, or set MASTER_KEY.`,
    ])
  }
  return parseKey(file, readOrMake(file, 'base64'))
}

function readKey(file: string): Buffer {
  return parseKey(file, readPrivate(file))
}

/** @throws BadSettings when others than its owner may read or change the file */
function readPrivate(file: string): string {
  const mode = statSync(file).mode & 0o777
  // Windows shows the same mode for every file.
  if (process.platform !== 'win32' && (mode & OTHERS) !== 0) {
    const shown = mode.toString(8).padStart(4, '0')
    throw new BadSettings([
      `${file} is open to others than its owner (mode ${shown}): run "chmod 600 ${file}". ` +
        'If they may have read it, replace the key.',
    ])
  }
  return readFileSync(file, 'utf8').trim()
}

/** @throws BadSettings */
function parseKey(file: string, text: string): Buffer {
  const key = parseMasterKey(text)
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
      // Another start was first, and may have erased the draft too.
      if (!existsSync(file)) throw error
    }
    syncFolder(dirname(file))
  }
  eraseDrafts(file)
  return readPrivate(file)
}

/** Also those of starts that were killed. Nobody needs a draft once the file is there. */
function eraseDrafts(file: string): void {
  const prefix = `${basename(file)}.`
  for (const name of readdirSync(dirname(file))) {
    const isDraft = name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length))
    if (isDraft) rmSync(join(dirname(file), name), { force: true })
  }
}
