// What scripts of others put beside the pages' own.

/** Of Go's wasm_exec.js. */
declare class Go {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

/** Of the program of cmd/prove. */
declare function refoldProve(what: string, a: Uint8Array, b: Uint8Array): string;
