import { describe } from 'vitest'
import { createSqliteHarness } from './harness.ts'
import { storeContract } from './suite.ts'

describe('the store on SQLite', () => storeContract(createSqliteHarness))
