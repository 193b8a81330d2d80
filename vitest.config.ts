import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { TEST_WITHIN_MS } from './test/deadlines.ts'
import { LongestFirst } from './test/longest-first.ts'

export default defineConfig({
  test: {
    include: ['{src,simulator,test,panel}/**/*.test.ts'],
    globalSetup: [
      'test/logs/log-setup.ts',
      'test/databases/postgres-setup.ts',
      'test/browser/build-setup.ts',
      'test/program-setup.ts',
    ],
    // The simulators of the flows are compiled once, not at each start. (The service has a cache of its own.)
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/tests') },
    // Flows start whole services and networks on loopback, which is slow on two busy cores.
    testTimeout: TEST_WITHIN_MS,
    // vitest would use one worker on two cores. The tests often wait, for retries and restarts.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    hookTimeout: TEST_WITHIN_MS,
  },
})
