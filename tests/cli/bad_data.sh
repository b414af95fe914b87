#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bad data: one clear line with file, row and column; exit code 1.
. "$(dirname "$0")/cli.inc"
. "$here/models.inc"

# bad TEXT FILE... : training on the files fails with TEXT.
bad() {
    bad_text=$1
    shift
    files=
    for file in "$@"; do files="$files --data $file"; done
    refuses 1 "$bad_text" train mlp.onnxtxt $files --threads 1 --epochs 1 --batch-size 1000 --quiet
}

# CSV
sed '7s/,[0-9]*$/,3/' plain.csv >bad.csv
bad "bad.csv: line 7, column 5 ('4'): label 3 is outside 0..2" bad.csv
sed '7s/,[0-9]*$/,-1/' plain.csv >bad.csv
bad "line 7, column 5 ('4'): label -1 is outside 0..2" bad.csv
sed '7s/,[0-9]*$/,1.5/' plain.csv >bad.csv
bad "line 7, column 5 ('4'): label 1.5 is not a whole number" bad.csv
sed '9s/^[0-9]*/nan/' header.csv >bad.csv
bad "bad.csv: line 9, column 1 ('a'): 'nan' is not a decimal number" bad.csv
sed '9s/^[0-9]*//' header.csv >bad.csv
bad "bad.csv: line 9, column 1 ('a'): is missing" bad.csv
sed '9s/,[0-9]*$/,/' header.csv >bad.csv
bad "bad.csv: line 9, column 5 ('kind'): is missing" bad.csv
sed '9s/,[^,]*$/, /' text.csv >bad.csv
bad "bad.csv: line 9, column 5 ('kind'): is missing" bad.csv
sed '9s/^[0-9]*/inf/' header.csv >bad.csv
bad "line 9, column 1 ('a'): 'inf' is not a decimal number" bad.csv
sed '9s/^[0-9]*/0x10/' header.csv >bad.csv
bad "line 9, column 1 ('a'): '0x10' is not a decimal number" bad.csv
sed '9s/^[0-9]*/many/' header.csv >bad.csv
bad "line 9, column 1 ('a'): 'many' is not a decimal number" bad.csv
sed '9s/,[0-9]*$//' header.csv >bad.csv
bad "bad.csv: line 9 has 4 columns, expected 5" bad.csv
sed '9s/$/,1/' header.csv >bad.csv
bad "bad.csv: line 9 has 6 columns, expected 5" bad.csv
sed '9s/.*//' header.csv >bad.csv
bad "bad.csv: line 9 is empty" bad.csv
cut -d , -f 2- plain.csv >bad.csv
bad "input 'x' wants rows of [4]" bad.csv
sed '9s/^/"/' header.csv >bad.csv
bad "bad.csv: line 9, column 1 has a quote that is not closed" bad.csv
sed '9s/^/"4"4/' header.csv >bad.csv
bad "bad.csv: line 9, column 1 has text after its closing quote" bad.csv
head -n 1 header.csv >bad.csv
bad "bad.csv: has no rows" bad.csv
: >bad.csv
bad "bad.csv: is empty" bad.csv
bad "nowhere.csv" nowhere.csv
bad "is a" .
head -n 30 plain.csv >fewer.csv
bad "has 30 rows, others have 60" x.npy labels=y.npy fewer.csv
sed '1s/b/a/' header.csv >bad.csv
bad "bad.csv: field 'a' is there already" bad.csv
refuses 1 "--label: the data has no field 'class'" train mlp.onnxtxt --data header.csv --label class
refuses 1 "the data has no field 'z'" train mlp.onnxtxt --data header.csv --bind x=a,b,c,z
refuses 1 "there is no input 'z'" train mlp.onnxtxt --data header.csv --bind z=a
refuses 2 "is not INPUT=FIELD" train mlp.onnxtxt --data header.csv --bind x
# The row is named where quoted cells hold line ends.
printf 'a,b,c,d,"the\nkind"\n1,2,3,4,0\n1,2,3,4,1\n1,2,x,4,2\n' >bad.csv
bad "bad.csv: line 5, column 3 ('c'): 'x' is not a decimal number" bad.csv

# numpy
head -c 300 x.npy >bad.npy
bad "bad.npy: array 'x' is stated as f32[60,4] but has 172 bytes" x=bad.npy y.npy
head -c 60 x.npy >bad.npy
bad "bad.npy: declares a header of" x=bad.npy y.npy
head -c 8 x.npy >bad.npy
bad "bad.npy" x=bad.npy y.npy
sed 's/<f4/<U4/' x.npy >bad.npy
bad "bad.npy: element type is not one of numpy's numeric types" x=bad.npy y.npy
sed 's/(60, 4)/(60,-4)/' x.npy >bad.npy
bad "bad.npy: the header declares no array of rows" x=bad.npy y.npy
sed 's/(60, 4)/(6e9999)/' x.npy >bad.npy
bad "bad.npy" x=bad.npy y.npy
bad "nothing in the data is left for input 'labels'" x.npy
python3 - <<'END'
import struct
data = bytearray(open("x.npy", "rb").read())
start = len(data) - 60 * 16
data[start + 16 * 7 + 8:start + 16 * 7 + 12] = struct.pack("<f", float("nan"))
open("bad.npy", "wb").write(data)
END
bad "bad.npy: array 'x', row 8, element 3: is missing or not a number" x=bad.npy y.npy
size=$(wc -c <packed.npz)
head -c $((size - 30)) packed.npz >bad.npz
bad "bad.npz: is not an .npz" bad.npz
python3 - <<'END'
import zipfile
data = bytearray(open("packed.npz", "rb").read())
with zipfile.ZipFile("packed.npz") as archive:
    info = archive.infolist()[0]
    at = info.header_offset + 30 + len(info.filename) + 40
data[at] ^= 0x55
open("bad.npz", "wb").write(data)
with zipfile.ZipFile("empty.npz", "w") as archive:
    archive.writestr("notes.txt", "nothing")
END
bad "bad.npz: member 'x.npy' is damaged" bad.npz
# Arrays that nobody binds do not matter; one that is bound is named.
python3 - <<'END'
import struct
import zipfile

def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data

with zipfile.ZipFile("packed.npz") as archive:
    x, labels = archive.read("x.npy"), archive.read("labels.npy")
with zipfile.ZipFile("mixed.npz", "w") as archive:
    archive.writestr("names.npy", npy("<U1", "(2,)", b"a\0\0\0b\0\0\0"))
    archive.writestr("epoch.npy", npy("<i8", "()", bytes(8)))
    archive.writestr("few.npy", npy("<i8", "(2,)", bytes(16)))
    archive.writestr("x.npy", x)
    archive.writestr("labels.npy", labels)
END
run 0 train mlp.onnxtxt --data mixed.npz --split 0.25 --threads 1 --epochs 1 --out mixed.onnx
refuses 1 "mixed.npz: field 'few' of input 'labels' has 2 rows, 'x' of input 'x' has 60" \
    train mlp.onnxtxt --data mixed.npz --bind labels=few
refuses 1 "input 'labels': mixed.npz: array 'names': element type is not one of numpy's" \
    train mlp.onnxtxt --data mixed.npz --bind labels=names
refuses 1 "mixed.npz: array 'epoch': the header declares no array of rows" \
    train mlp.onnxtxt --data mixed.npz --bind labels=epoch
bad "empty.npz: has no arrays" empty.npz

# IDX and gzip
head -c 100 images.idx >bad.idx
bad "bad.idx: is stated as u8[60,2,2] but has 84 bytes" bad.idx labels.idx
head -c 10 images.idx >bad.idx
bad "bad.idx: declares element type 8 and 3 axes in 10 bytes" bad.idx labels.idx
printf '\0\0\7\1\0\0\0\1x' >bad.idx
bad "bad.idx: declares element type 7" bad.idx labels.idx
head -c 100 images.idx.gz >bad.idx.gz
bad "bad.idx.gz: ends inside its compressed data" bad.idx.gz labels.idx
size=$(wc -c <plain.csv.gz)
{ head -c $((size - 8)) plain.csv.gz && printf '12345678'; } >bad.csv.gz
bad "bad.csv.gz: compressed data is damaged" bad.csv.gz
head -c 5 plain.csv.gz >bad.csv.gz
bad "bad.csv.gz: ends inside its compressed data" bad.csv.gz
printf 'MZ\0\0\1\2' >bad.exe
bad "bad.exe: is not one of .npz, .npy, CSV and IDX" bad.exe

# What the loss or model makes impossible.
sed 's/scores = Gemm/scores = Gemm2/' mlp.onnxtxt >bad.onnxtxt
run 1 train bad.onnxtxt --data plain.csv
err "Gemm2"
printf 'not a model' >bad.onnx
run 1 train bad.onnx --data plain.csv
err "bad.onnx"
echo ok
