import { ensurePanelBuilt } from './ensure-built.ts'

/** Builds the panel once for all test files, because concurrent builds would overwrite each other. */
export default function setup(): void {
  ensurePanelBuilt()
}
