import { randomBytes, randomInt } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fstatSync,
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
import { giveToOwnerOf } from './store/engine/file-owner.ts'
import { refuseUnfinishedRestore } from './store/engine/sqlite/restore.ts'
import { syncFolder } from './store/engine/sync-to-disk.ts'

const KEY_BYTES = 32
const MOST_DRAFTS = 2 ** 47
const PRIVATE_FILE = 0o600
const PRIVATE_FOLDER = 0o700
/** The permissions of the file's group and of all other users. */
const OTHERS = 0o077

export interface Keys {
  adminKey: string
  masterKey: Buffer
}

/**
 * Reads the keys from the settings, or else from the data folder, where the first start creates them (mode 0600). Does not need the
 * folder if the data and both keys are elsewhere.
 * @throws BadSettings if a key file is damaged or accessible to others, if there is data but no master key, or if the file system
 * of the folder cannot keep a key private; StoreUnusable if the master key is missing and a restore was not finished
 */
export function openKeys(settings: Pick<Settings, 'dataDir' | 'databaseUrl' | 'adminKey' | 'masterKey'>): Keys {
  const { dataDir, databaseUrl, adminKey, masterKey } = settings
  if (databaseUrl === null || adminKey === null || masterKey === null)
    mkdirSync(dataDir, { recursive: true, mode: PRIVATE_FOLDER })
  const adminFile = join(dataDir, 'admin.key')
  return {
    adminKey: adminKey ?? readAdminKey(adminFile, readOrCreate(adminFile, 'base64url')),
    masterKey: masterKey ?? openMasterKey(dataDir),
  }
}

/**
 * The master key, without creating one.
 * @returns null if the first start has not created it yet
 * @throws BadSettings or StoreUnusable as `openKeys`
 */
export function findMasterKey({ dataDir, masterKey }: Pick<Settings, 'dataDir' | 'masterKey'>): Buffer | null {
  if (masterKey !== null) return masterKey
  const file = join(dataDir, 'master.key')
  if (existsSync(file)) return readKey(file)
  refuseMissingKey(dataDir, file)
  return null
}

/** The file in which a person finds the admin key. Null if it is in the environment variable `ADMIN_KEY`. */
export function findAdminKeyFile(settings: Pick<Settings, 'dataDir' | 'adminKey' | 'adminKeyFile'>): string | null {
  return settings.adminKey === null ? join(settings.dataDir, 'admin.key') : settings.adminKeyFile
}

/** The admin key, without creating one. @returns null if the first start has not created it yet. @throws BadSettings as `openKeys` */
export function findAdminKey({ dataDir, adminKey }: Pick<Settings, 'dataDir' | 'adminKey'>): string | null {
  if (adminKey !== null) return adminKey
  const file = join(dataDir, 'admin.key')
  return existsSync(file) ? readAdminKey(file, readPrivate(file)) : null
}

/** The files of a rotation of the master key in the data folder. */
interface MasterKeyFiles {
  current: Buffer
  /** The key in `master.key.next`, which the first call creates. It stays the same until it is adopted. */
  next(): Buffer
  /**
   * Replaces the current key with the next one atomically. Keeps the replaced key in a file of its own, for earlier backups.
   * @returns the file of the replaced key
   */
  adopt(): string
}

/** @throws BadSettings if the key file is missing or damaged */
export function openMasterKeyFiles(dataDir: string): MasterKeyFiles {
  const file = join(dataDir, 'master.key')
  const nextFile = `${file}.next`
  if (!existsSync(file)) throw new BadSettings([`${file} is missing: there is no key to rotate.`])
  const replacedFile = `${file}.replaced-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`
  return {
    current: readKey(file),
    next: () => parseKey(nextFile, readOrCreate(nextFile, 'base64')),
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

/** @throws BadSettings */
function readAdminKey(file: string, text: string): string {
  const key = parseAdminKey(text)
  if (key === undefined)
    throw new BadSettings([
      `${file} does not contain ${ADMIN_KEY_FORMAT}: delete it, and the next start creates a new key; or set ADMIN_KEY.`,
    ])
  return key
}

function openMasterKey(dataDir: string): Buffer {
  const file = join(dataDir, 'master.key')
  refuseMissingKey(dataDir, file)
  return parseKey(file, readOrCreate(file, 'base64'))
}

/** @throws BadSettings if there is data, but no key; StoreUnusable if a restore was not finished, so that there will be data */
function refuseMissingKey(dataDir: string, file: string): void {
  if (existsSync(file)) return
  refuseUnfinishedRestore(dataDir)
  if (!existsSync(join(dataDir, 'pombal.db'))) return
  throw new BadSettings([`${file} is missing, and the data cannot be read without it: restore it, or set MASTER_KEY.`])
}

function readKey(file: string): Buffer {
  return parseKey(file, readPrivate(file))
}

/** Windows shows the same mode for every file. */
function isForOthers(mode: number): boolean {
  return process.platform !== 'win32' && (mode & OTHERS) !== 0
}

function isWithoutLinks(error: unknown): boolean {
  const { code = '', syscall } = error as NodeJS.ErrnoException
  return syscall === 'link' && ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code)
}

function unsuitable(file: string, what: 'permissions' | 'links'): BadSettings {
  return new BadSettings([
    `${file} cannot be created: its file system keeps no ${what}. Set DATA_DIR to a folder on another file system, or set ADMIN_KEY and MASTER_KEY.`,
  ])
}

/** @throws BadSettings if users other than its owner may read or change the file */
function readPrivate(file: string): string {
  const { mode } = statSync(file)
  if (isForOthers(mode)) {
    const shown = (mode & 0o777).toString(8).padStart(4, '0')
    throw new BadSettings([
      `${file} is accessible to other users (mode ${shown}): run "chmod 600 ${file}". ` +
        'If somebody else may have read it, replace the key.',
    ])
  }
  return readFileSync(file, 'utf8').trim()
}

/** @throws BadSettings */
function parseKey(file: string, text: string): Buffer {
  const key = parseMasterKey(text)
  if (!key) throw new BadSettings([`${file} does not contain 32 bytes as base64 or hex: restore it from your copy.`])
  return key
}

/** The file appears complete, and an existing file is never replaced. Two simultaneous starts therefore use the same key. */
function readOrCreate(file: string, encoding: 'base64' | 'base64url'): string {
  if (!existsSync(file)) {
    // Not the process id: it is 1 in every container, and two containers may start on one volume.
    const draft = `${file}.${randomInt(MOST_DRAFTS)}`
    const descriptor = openSync(draft, 'wx', PRIVATE_FILE)
    writeSync(descriptor, `${randomBytes(KEY_BYTES).toString(encoding)}\n`)
    fsyncSync(descriptor)
    const isOpen = isForOthers(fstatSync(descriptor).mode)
    closeSync(descriptor)
    try {
      if (isOpen) throw unsuitable(file, 'permissions')
      giveToOwnerOf(dirname(file), draft)
      linkSync(draft, file)
    } catch (error) {
      // Another start was first, and may have erased this draft.
      if (!existsSync(file)) {
        rmSync(draft, { force: true })
        throw isWithoutLinks(error) ? unsuitable(file, 'links') : error
      }
    }
    syncFolder(dirname(file))
  }
  eraseDrafts(file)
  return readPrivate(file)
}

/** Once the file exists, no draft is needed. Includes the drafts of killed starts. */
function eraseDrafts(file: string): void {
  const prefix = `${basename(file)}.`
  for (const name of readdirSync(dirname(file))) {
    const isDraft = name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length))
    if (isDraft) rmSync(join(dirname(file), name), { force: true })
  }
}
