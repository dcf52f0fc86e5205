//! Python's own ways with temporary files and trees.

use crate::programs::desk::{Desk, ready};

#[test]
fn python_temporary_files_and_directories_come_and_go() {
    if !ready(&["python3"]) {
        return;
    }
    let desk = Desk::new();
    let script = r"
import os, tempfile
with tempfile.NamedTemporaryFile(dir='.', delete=True) as file:
    name = file.name
    file.write(b'x' * 10000)
    file.flush()
    assert os.path.getsize(name) == 10000
    with open(name, 'rb') as again:
        assert again.read() == b'x' * 10000
assert not os.path.exists(name), name
with tempfile.TemporaryFile(dir='.') as file:
    file.write(b'hello')
    file.seek(0)
    assert file.read() == b'hello'
with tempfile.SpooledTemporaryFile(max_size=10, dir='.') as file:
    file.write(b'rolls over to the disk')
    file.seek(0)
    assert file.read() == b'rolls over to the disk'
with tempfile.TemporaryDirectory(dir='.') as directory:
    for n in range(50):
        with open(os.path.join(directory, str(n)), 'w') as file:
            print(n, file=file)
    assert len(os.listdir(directory)) == 50
assert not os.path.exists(directory), directory
assert os.listdir('.') == [], os.listdir('.')
print('done')
";
    assert_eq!(desk.run("python3", &["-c", script]), "done\n");
    desk.finish();
}

#[test]
fn python_removes_a_deep_tree_and_replaces_a_file_atomically() {
    if !ready(&["python3"]) {
        return;
    }
    let desk = Desk::new();
    let script = r"
import os, shutil
path = 'deep'
for level in range(60):
    path = os.path.join(path, f'level{level}')
    os.makedirs(path)
    with open(os.path.join(path, 'file'), 'w') as file:
        file.write(str(level))
shutil.copytree('deep', 'copy')
same = [sorted(len(part[2]) for part in os.walk(tree)) for tree in ('deep', 'copy')]
assert same[0] == same[1] and len(same[0]) == 61, same
shutil.move('copy', 'moved')
shutil.rmtree('deep')
shutil.rmtree('moved')
for n in range(200):
    with open('settings.new', 'w') as file:
        file.write(str(n))
        file.flush()
        os.fsync(file.fileno())
    os.replace('settings.new', 'settings')
    with open('settings') as file:
        assert file.read() == str(n)
for n in range(500):
    os.mkdir('work')
    with open('work/file', 'w') as file:
        file.write(str(n))
    os.rename('work', 'done')
    os.listdir('done')
    os.unlink('done/file')
    os.rmdir('done')
print(os.listdir('.'))
";
    assert_eq!(desk.run("python3", &["-c", script]), "['settings']\n");
    desk.finish();
}
